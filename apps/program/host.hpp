// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <string>

#include "bayesaim/core/record.hpp"

namespace bayesaim::program {

/// What a command has instead of a terminal, if a server runs it.
struct Host {
    std::function<bool()> stopped;                    ///< asked instead of Ctrl-C
    std::function<void(const Record&)> news;          ///< of a command that runs
    std::function<void(const std::string&)> publish;  ///< the result, in the format of --format

    /// The host of the command that this thread runs; null at a terminal.
    static const Host* current();
};

/// Until its end, commands that this thread runs have this host.
class Hosting {
  public:
    explicit Hosting(const Host& host);
    ~Hosting();
    Hosting(const Hosting&) = delete;
    Hosting& operator=(const Hosting&) = delete;
};

}  // namespace bayesaim::program
