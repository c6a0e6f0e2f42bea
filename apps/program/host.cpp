// SPDX-License-Identifier: MIT
#include "program/host.hpp"

namespace bayesaim::program {
namespace {

// A command asks for Ctrl-C at many depths, always in the thread that runs it.
thread_local const Host* host_of_thread = nullptr;

}  // namespace

const Host* Host::current() { return host_of_thread; }

Hosting::Hosting(const Host& host) { host_of_thread = &host; }
Hosting::~Hosting() { host_of_thread = nullptr; }

}  // namespace bayesaim::program
