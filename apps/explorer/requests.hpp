// SPDX-License-Identifier: MIT
#pragma once
#include <chrono>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/command.hpp"

/// What the page may ask for: commands of the program with options whose sizes are bounded. No option names a file.
namespace bayesaim::explorer {

/// Options by name, without dashes, as the query of an address has them.
using Parameters = std::vector<std::pair<std::string, std::string>>;

/// An option that the page may use.
struct Allowed {
    enum class Kind { text, flag, number, points };  ///< `points` is a grid, whose points are counted
    std::string option;
    Kind kind = Kind::text;
    double highest = 0;  ///< of a number, or of the number of points
    /// Other sizes of a number, 0 apart, are refused: the spectral engine, which cannot be stopped, may take very long there.
    double smallest = 0, largest = std::numeric_limits<double>::max();
};

struct Request {
    std::string command;
    void (*add)(program::Program&);
    std::vector<Allowed> options;
    std::chrono::seconds limit;  ///< then the command is stopped
    /// Throws InvalidArgument if the options together ask for too much.
    void (*check)(const Parameters&) = nullptr;
};

/// The request of this command, or null if there is none.
const Request* find_request(std::string_view command);

/// The arguments of the program, `theory --width=0.5 ..`, that compute the answer. Throws InvalidArgument for an option that
/// the page may not use, a bound that is exceeded or an option given twice.
std::vector<std::string> arguments_of(const Request& request, const Parameters& parameters);

}  // namespace bayesaim::explorer
