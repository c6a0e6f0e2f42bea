// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// The command line. CLI11 is named only in command.cpp: it costs more to compile than a command.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace bayesaim::program {

/// The words that options take, where they are a fixed list. CLI11 keeps none that it does not check itself.
using ValueTable = std::map<const CLI::Option*, std::vector<std::string>>;

/// An option of a command. Each member function sets one property.
class Option {
  public:
    Option(CLI::Option* option, ValueTable* values) : option_(option), values_(values) {}
    Option& required();
    Option& type_name(const std::string& name);
    /// The default that --help shows.
    Option& default_text(const std::string& text);
    Option& description(const std::string& text);
    /// The words that completion offers and the manual lists. They are not checked here.
    Option& values(const std::vector<std::string>& words);

  private:
    CLI::Option* option_;
    ValueTable* values_;
};

/// What --help, manual pages and completion tell about an option, or a positional argument.
struct OptionDescription {
    std::vector<std::string> names;  ///< "-h", "--help"; one without dashes if positional
    std::string type;                ///< "FILE", "N"; empty for a flag
    std::string default_text, description;
    std::vector<std::string> values;
    bool positional = false, flag = false, required = false, repeated = false;
};

struct CommandDescription {
    std::string name, description, footer;
    std::vector<OptionDescription> options;
};

/// The program has a name and options too.
struct ProgramDescription : CommandDescription {
    std::string version;
    std::vector<CommandDescription> commands;
};

/// A handle of a command of the program. A default-constructed handle has no options; it serves arguments
/// that do not come from a command line. The values that options set must outlive the parsing. A name without
/// dashes is a positional argument. If a number cannot be parsed, the message names the option.
class Command {
  public:
    Command() = default;
    Command(CLI::App* app, ValueTable* values) : app_(app), values_(values) {}

    /// --help shows the type of the value.
    Option text(const std::string& name, std::string& value, const std::string& description,
                const std::string& type = "TEXT");
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
    /// Leaves the command out of --help, messages, manual and completion.
    void hide();
    void after_parsing(const std::function<void()>& check);
    bool takes(const std::string& option) const;
    /// Whether the command line has this option; false if the command does not take it.
    bool given(const std::string& option) const;

  private:
    Option handle(CLI::Option* option) { return {option, values_}; }

    CLI::App* app_ = nullptr;
    ValueTable* values_ = nullptr;
};

class Program {
  public:
    Program(const std::string& name, const std::string& description, const std::string& version);
    ~Program();

    /// Which of the ranks that a launcher started run a command. A divided one has no use for several processes that are
    /// not ranks.
    enum class Runs { on_first_rank, on_all_ranks, divided };

    /// Adds a command, with arguments that its options set. `action` takes them and returns the exit code.
    template <class Arguments, class Action>
    std::pair<Command, Arguments&> add_command(const std::string& name, const std::string& description,
                                               Action action, Runs runs = Runs::on_first_rank) {
        auto arguments = std::make_shared<Arguments>();
        return {add_action(
                    name, description, [=] { return action(*arguments); }, runs),
                *arguments};
    }
    /// Runs the command that the first argument names; returns its exit code. Throws InvalidArgument for wrong
    /// arguments.
    int run(const std::vector<std::string>& arguments);
    /// All commands that are not hidden.
    ProgramDescription describe() const;

  private:
    Command add_action(const std::string& name, const std::string& description,
                       const std::function<int()>& action, Runs runs);

    std::vector<const CLI::App*> shown_commands() const;

    std::unique_ptr<CLI::App> app_;
    ValueTable values_;
    std::map<const CLI::App*, std::function<int()>> actions_;
};

/// The whole text as a number; throws InvalidArgument, "{name} must be {requirement}, got '{text}'".
double parse_number(const std::string& name, const std::string& requirement, const std::string& text);

}  // namespace bayesaim::program
