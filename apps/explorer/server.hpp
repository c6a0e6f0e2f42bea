// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <memory>
#include <string>

namespace bayesaim::explorer {

struct ServerOptions {
    std::string host = "127.0.0.1";
    int port = 0;  ///< 0: any that is free
    std::string token;
    int seconds = 0;  ///< limit of the time of one command; 0: as requests.cpp has it
};

/// The explorer: serves its one page, and runs commands for it. httplib is named only in server.cpp.
class Server {
  public:
    /// Takes the port. Throws InvalidArgument if it is taken, or the host is not one of this machine.
    explicit Server(const ServerOptions& options);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// To be opened in a browser, with the token.
    std::string address() const;
    /// Serves until `ended` is true.
    void serve(const std::function<bool()>& ended);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace bayesaim::explorer
