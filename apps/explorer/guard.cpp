// SPDX-License-Identifier: MIT
#include "explorer/guard.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include <fmt/format.h>

namespace bayesaim::explorer {
namespace {

/// localhost of localhost:8000, ::1 of [::1]:8000. The port may be that of a tunnel.
std::string_view name_of(std::string_view host) {
    if (host.starts_with('[')) {
        const std::size_t end = host.find(']');
        return end == std::string_view::npos ? "" : host.substr(1, end - 1);
    }
    return host.substr(0, host.find(':'));
}

/// The time does not depend on where they differ.
bool same_secret(std::string_view a, std::string_view b) {
    unsigned difference = a.size() != b.size() ? 1 : 0;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
        difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
    return difference == 0;
}

}  // namespace

std::string random_token() {
    std::random_device device;  // reads the kernel's generator
    std::string token;
    for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", device());
    return token;
}

bool is_loopback(std::string_view host) {
    return host == "localhost" || host == "127.0.0.1" || host == "::1";
}

Guard::Guard(std::string token, std::vector<std::string> names)
    : token_(std::move(token)), names_(std::move(names)) {}

std::optional<std::string> Guard::refusal(const Sender& sender) const {
    if (sender.hosts.size() != 1) return "a request must name one Host";
    const std::string_view name = name_of(sender.hosts.front());
    if (!is_loopback(name) && std::ranges::find(names_, name) == names_.end())
        return "this server does not answer to that Host";
    for (const std::string& origin : sender.origins) {
        if (origin != "http://" + sender.hosts.front()) return "pages of another Origin may not ask here";
    }
    if (sender.tokens.size() != 1 || !same_secret(sender.tokens.front(), token_))
        return "the token of the address is missing or wrong: open the address that bayesaim explore printed";
    return std::nullopt;
}

}  // namespace bayesaim::explorer
