// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// The command line. CLI11 is named only in command.cpp: it costs more to compile than a command.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace bayesaim::program {

/// An option of a command. Each member function sets one property.
class Option {
  public:
    explicit Option(CLI::Option* option) : option_(option) {}
    Option& required();
    Option& type_name(const std::string& name);
    /// The default that --help shows.
    Option& default_text(const std::string& text);
    Option& description(const std::string& text);

  private:
    CLI::Option* option_;
};

/// A handle of a command of the program. A default-constructed handle has no options; it serves arguments
/// that do not come from a command line. The values that options set must outlive the parsing. A name without
/// dashes is a positional argument. If a number cannot be parsed, the message names the option.
class Command {
  public:
    Command() = default;
    explicit Command(CLI::App* app) : app_(app) {}

    Option text(const std::string& name, std::string& value, const std::string& description);
    Option file(const std::string& name, std::string& value, const std::string& description);
    Option texts(const std::string& name, std::vector<std::string>& values, const std::string& description);
    Option number(const std::string& name, double& value, const std::string& description);
    Option count(const std::string& name, int& value, int lowest, const std::string& description,
                 int highest = std::numeric_limits<int>::max());
    Option seed(const std::string& name, std::uint64_t& value, const std::string& description);
    void flag(const std::string& name, bool& value, const std::string& description);
    /// An option whose text is passed to `parse`.
    Option parsed(const std::string& name, const std::function<void(const std::string&)>& parse,
                  const std::string& description);
    /// An option that was added before.
    Option option(const std::string& name);

    void footer(const std::string& text);
    void after_parsing(const std::function<void()>& check);
    /// Whether the command line has this option; false if the command does not take it.
    bool given(const std::string& option) const;

  private:
    CLI::App* app_ = nullptr;
};

class Program {
  public:
    Program(const std::string& name, const std::string& description, const std::string& version);
    ~Program();

    Command add_command(const std::string& name, const std::string& description);
    /// Throws InvalidArgument for wrong arguments. Returns an exit code if no command runs, as with --help.
    std::optional<int> parse(int argc, char** argv);
    /// Number of the parsed command, in the order of add_command.
    std::size_t chosen() const;

  private:
    std::unique_ptr<CLI::App> app_;
};

/// The whole text as a number; throws InvalidArgument, "{name} must be {requirement}, got '{text}'".
double parse_number(const std::string& name, const std::string& requirement, const std::string& text);

}  // namespace bayesaim::program
