// SPDX-License-Identifier: MIT
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Who may ask. A page of another site can make a browser send requests here, and with a name of its own that it lets point to
/// this machine it could read the answers (DNS rebinding): so the name of the host, the origin and a secret are checked.
namespace bayesaim::explorer {

/// 128 random bits as hexadecimal digits.
std::string random_token();

/// Whether only programs on this machine reach an address of this name.
bool is_loopback(std::string_view host);

/// What a request says of itself; each field of its header as often as it came.
struct Sender {
    std::vector<std::string> hosts, origins;
    std::vector<std::string> tokens;
};

class Guard {
  public:
    /// `names` are the names that this server may be called by, beside those of loopback.
    Guard(std::string token, std::vector<std::string> names);

    /// Why this request is refused; std::nullopt if it is not.
    std::optional<std::string> refusal(const Sender& sender) const;

  private:
    std::string token_;
    std::vector<std::string> names_;
};

}  // namespace bayesaim::explorer
