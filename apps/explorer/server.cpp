// SPDX-License-Identifier: MIT
#include "explorer/server.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <httplib.h>
#include <malloc.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/text.hpp"

#include "explorer/computations.hpp"
#include "explorer/guard.hpp"
#include "explorer/page.hpp"
#include "explorer/requests.hpp"
#include "program/report.hpp"

namespace bayesaim::explorer {
namespace {

constexpr int computations_at_once = 2;
// A connection that waits holds a thread.
constexpr int connections_at_once = 64;
constexpr int seconds_to_read = 3;
// httplib compresses "application/json", slowly, for browsers that can read it; it does not know this name of the type.
constexpr const char* json_type = "application/json; charset=utf-8";
constexpr const char* event_type = "text/event-stream";

std::string error_json(const std::string& message) {
    // A message may quote bytes of the request that are no text.
    return nlohmann::json{{"error", message}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
           '\n';
}

/// A server-sent event.
std::string event(std::string_view name, std::string_view data) {
    std::string text = fmt::format("event: {}\n", name);
    for (const std::string_view line : split(data, '\n')) text += fmt::format("data: {}\n", line);
    return text + '\n';
}

std::vector<std::string> header_values(const httplib::Request& request, const char* name) {
    std::vector<std::string> values;
    const auto [begin, end] = request.headers.equal_range(name);
    for (auto header = begin; header != end; ++header) values.push_back(header->second);
    return values;
}

void refuse(httplib::Response& response, int status, const std::string& message) {
    response.status = status;
    response.set_content(error_json(message), json_type);
}

/// "theory" of "/run/theory" if the prefix is "/run/".
std::optional<std::string> rest_of(const std::string& path, std::string_view prefix) {
    if (!path.starts_with(prefix)) return std::nullopt;
    return path.substr(prefix.size());
}

std::string machine_name() {
    std::array<char, 256> name{};
    return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

void add_headers(httplib::Server& server) {
    server.set_default_headers({{"Content-Security-Policy", std::string(page_policy())},
                                {"X-Content-Type-Options", "nosniff"},
                                {"Referrer-Policy", "no-referrer"},
                                {"Cross-Origin-Opener-Policy", "same-origin"},
                                {"Cross-Origin-Resource-Policy", "same-origin"},
                                {"Cache-Control", "no-store"}});
}

}  // namespace

struct Server::State {
    State(const ServerOptions& of, const std::vector<std::string>& names)
        : options(of),
          guard(of.token, names),
          computations(computations_at_once, std::chrono::seconds(of.seconds)) {}

    ServerOptions options;
    Guard guard;
    Computations computations;
    httplib::Server server{};

    /// Answers with the result of a command, or with server-sent events while it runs.
    void answer(const std::string& command, bool streamed, const Parameters& parameters,
                httplib::Response& response) {
        const Request* request = find_request(command);
        if (request == nullptr) return refuse(response, 404, "there is no such request");
        std::vector<std::string> arguments;
        try {
            arguments = arguments_of(*request, parameters);
        } catch (const InvalidArgument& error) {
            if (!streamed) return refuse(response, 400, error.what());
            return response.set_content(event("failure", error_json(error.what())), event_type);
        }
        // Computed while it is sent: only then does httplib tell whether the page is still there.
        const auto send = [this, request, arguments, streamed](std::size_t, httplib::DataSink& sink) {
            const auto write = [&](const std::string& text) { return sink.write(text.data(), text.size()); };
            const Answer answer = computations.run(
                *request, arguments, [&] { return !sink.is_writable(); },
                [&](const Record& news) {
                    if (streamed) write(event("news", program::to_json_text(news)));
                });
            const std::string text = answer.error.empty() ? answer.text : error_json(answer.error);
            write(!streamed ? text : event(answer.error.empty() ? "result" : "failure", text));
            sink.done();
            return true;
        };
        response.set_chunked_content_provider(streamed ? event_type : json_type, send);
    }

    void route(const httplib::Request& request, httplib::Response& response) {
        Sender sender{header_values(request, "Host"), header_values(request, "Origin"), {}};
        Parameters parameters;
        for (const auto& [name, value] : request.params) {
            if (name == "token") {
                sender.tokens.push_back(value);
            } else {
                parameters.emplace_back(name, value);
            }
        }
        if (const auto refusal = guard.refusal(sender)) return refuse(response, 403, *refusal);
        if (request.method != "GET") return refuse(response, 405, "only GET is answered");
        if (request.path == "/") {
            // Of known length, so that httplib does not compress it anew for each visit.
            response.set_content_provider(page().size(), "text/html; charset=utf-8",
                                          [](std::size_t from, std::size_t length, httplib::DataSink& sink) {
                                              return sink.write(page().data() + from, length);
                                          });
        } else if (const auto command = rest_of(request.path, "/run/")) {
            answer(*command, false, parameters, response);
        } else if (const auto streamed = rest_of(request.path, "/stream/")) {
            answer(*streamed, true, parameters, response);
        } else {
            refuse(response, 404, "there is no such page");
        }
    }
};

Server::Server(const ServerOptions& options) {
    std::vector<std::string> names;
    if (!is_loopback(options.host)) names = {options.host, machine_name()};
    state_ = std::make_unique<State>(options, names);
    httplib::Server& server = state_->server;
    add_headers(server);
    server.new_task_queue = [] { return new httplib::ThreadPool(connections_at_once); };
    server.set_keep_alive_max_count(1);
    server.set_keep_alive_timeout(seconds_to_read);
    server.set_read_timeout(seconds_to_read);
    server.set_write_timeout(seconds_to_read);
    server.set_payload_max_length(0);
    server.set_tcp_nodelay(true);
    // The default is SO_REUSEPORT, with which a second server would take the same port.
    server.set_socket_options([](socket_t socket) {
        const int yes = 1;
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
        state_->route(request, response);
        return httplib::Server::HandlerResponse::Handled;
    });
    server.set_exception_handler(
        [](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
            refuse(response, 500, "this request failed");
        });
    if (options.port == 0) {
        state_->options.port = server.bind_to_any_port(options.host);
        if (state_->options.port < 0)
            throw InvalidArgument(
                fmt::format("--host must be an address of this machine, got '{}'", options.host));
    } else if (!server.bind_to_port(options.host, options.port)) {
        throw InvalidArgument(fmt::format("port {} of {} is taken or not allowed; --port 0 takes a free one",
                                          options.port, options.host));
    }
}

Server::~Server() = default;

std::string Server::address() const {
    const std::string& host = state_->options.host;
    const bool six = host.find(':') != std::string::npos;
    return fmt::format("http://{}{}{}:{}/?token={}", six ? "[" : "", host, six ? "]" : "",
                       state_->options.port, state_->options.token);
}

void Server::serve(const std::function<bool()>& ended) {
    // Otherwise many threads would have heaps of their own, each of which keeps what its largest computation needed.
    mallopt(M_ARENA_MAX, computations_at_once);
    std::atomic<bool> left = false;
    std::jthread listening([&] {
        state_->server.listen_after_bind();
        left = true;
    });
    // A server that does not listen yet would not notice stop().
    while (!ended() || !(state_->server.is_running() || left))
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    state_->server.stop();
}

}  // namespace bayesaim::explorer
