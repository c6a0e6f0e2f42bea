// SPDX-License-Identifier: MIT
#pragma once
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// Argument checks. A caller's mistake throws InvalidArgument with one line that names the argument,
/// the value it got and what it takes; numerical outcomes are never reported this way.
/// Each kind of mistake has its own form of message, one function below.
namespace bayesaim {

class InvalidArgument : public std::invalid_argument {
  public:
    using std::invalid_argument::invalid_argument;
};

/// "width must be positive, got -1"
[[noreturn]] void throw_invalid(std::string_view name, std::string_view requirement, double value);
[[noreturn]] void throw_invalid(std::string_view name, std::string_view requirement, std::string_view value);
/// "--width cannot be combined with --limit small-width"
[[noreturn]] void throw_conflict(std::string_view option, std::string_view other);
/// "--resume needs --checkpoint FILE"
[[noreturn]] void throw_missing(std::string_view option, std::string_view needed);
/// "--plot is not available for several layers"
[[noreturn]] void throw_unavailable(std::string_view name, std::string_view circumstance);
/// "--heads applies only to --channel multi-head (channel is softmax)"
[[noreturn]] void throw_inapplicable(std::string_view option, std::string_view owner,
                                     std::string_view actual);
/// "cannot read dataset 'nothing.h5': No such file or directory"; `error` is the errno of the failed call.
[[noreturn]] void throw_unreadable(std::string_view kind, std::string_view file, int error);

void check_positive(std::string_view name, double value);  ///< finite and > 0
void check_non_negative(std::string_view name, double value);
void check_finite(std::string_view name, double value);
void check_between(std::string_view name, double value, double lowest, double highest);
void check_at_least(std::string_view name, long long value, long long lowest);
void check_size(std::string_view name, long long size, long long expected);

/// The index of `value` in `known`; the error lists what is known.
std::size_t check_one_of(std::string_view name, std::string_view value,
                         const std::vector<std::string>& known);

}  // namespace bayesaim
