// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/experiment_file.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
// It asserts what a file can violate, "[=", and then complains about it all the same.
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/files.hpp"
#include "bayesaim/core/input_file.hpp"
#include "bayesaim/core/table.hpp"
#include "bayesaim/experiments/estimator_table.hpp"
#include "bayesaim/experiments/grid.hpp"

namespace bayesaim::experiments {
namespace {

/// The place of an error: "study.toml:3:9: " goes before its message.
struct Source {
    std::string name;
    std::size_t most_points;

    [[noreturn]] void reject(const toml::source_position& where, const std::string& message) const {
        throw InvalidArgument(
            printable(fmt::format("{}:{}:{}: {}", name, where.line, where.column, message)));
    }
    [[noreturn]] void reject(const toml::node& node, const std::string& message) const {
        reject(node.source().begin, message);
    }
    /// The result of the work, whose complaints get the place of the node.
    template <class Work>
    auto at(const toml::node& node, Work work) const {
        try {
            return work();
        } catch (const InvalidArgument& error) {
            reject(node, error.what());
        }
    }
};

std::string describe(const toml::node& node) {
    if (const auto* text = node.as_string()) return fmt::format("the text '{}'", text->get());
    if (const auto* number = node.as_integer()) return fmt::format("the whole number {}", number->get());
    if (const auto* number = node.as_floating_point()) return fmt::format("the number {}", number->get());
    if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
    return node.is_array() ? "a list" : node.is_table() ? "a table" : "a date or time";
}

/// The values that one key gives to a setting.
struct Choice {
    const toml::node* node = nullptr;
    std::vector<Value> values{};
    std::optional<Grid> relative{};  ///< instead of values, if they are in units of a threshold
};

/// Reads the values of one setting; each must be of the setting's type.
struct ChoiceReader {
    const Source& source;
    const Setting& setting;

    Choice read(const toml::node& node) const {
        Choice choice{&node};
        if (const auto* list = node.as_array()) {
            if (list->empty()) reject(node, "a value or a list of values, got an empty list");
            for (const toml::node& element : *list) choice.values.push_back(scalar(element));
        } else if (node.is_string() && numeric()) {
            read_grid(node, choice);
        } else {
            choice.values.push_back(scalar(node));
        }
        return choice;
    }

    bool whole() const { return setting.member.index() <= 1; }
    bool numeric() const { return setting.member.index() <= 2; }

    [[noreturn]] void reject(const toml::node& node, const std::string& requirement) const {
        source.reject(node, fmt::format("{} must be {}", setting.name, requirement));
    }

    Value scalar(const toml::node& node) const {
        Value value;
        if (whole() && node.is_integer()) {
            const std::int64_t number = node.as_integer()->get();
            if (number < 0) reject(node, fmt::format("a non-negative whole number, got {}", number));
            value = static_cast<std::uint64_t>(number);
        } else if (numeric() && !whole() && node.is_number()) {
            value = *node.value<double>();
        } else if (setting.member.index() == 3 && node.is_boolean()) {
            value = node.as_boolean()->get();
        } else if (setting.member.index() == 4 && node.is_string()) {
            value = node.as_string()->get();
        } else {
            constexpr const char* types[] = {"a whole number", "a whole number", "a number", "true or false",
                                             "text"};
            reject(node, fmt::format("{}, got {}", types[setting.member.index()], describe(node)));
        }
        check(node, value);
        return value;
    }

    void check(const toml::node& node, const Value& value) const {
        const auto* count = std::get_if<std::uint64_t>(&value);
        if (setting.member.index() == 1 && count && *count > std::numeric_limits<int>::max()) {
            reject(node, fmt::format("at most {}, got {}", std::numeric_limits<int>::max(), *count));
        }
        if (setting.check) source.at(node, [&] { setting.check(setting.name, value); });
    }

    void read_grid(const toml::node& node, Choice& choice) const {
        const auto zero = setting.name == "alpha" ? Grid::Zero::allowed : Grid::Zero::refused;
        const Grid grid = source.at(node, [&] { return Grid(setting.name, node.as_string()->get(), zero); });
        if (grid.relative()) {
            if (setting.name != "alpha") reject(node, "made of numbers without x");
            choice.relative = grid;
            return;
        }
        for (const double number : grid.values()) {
            if (whole() && number != std::floor(number)) {
                reject(node, fmt::format("made of whole numbers, got {}", number));
            }
            choice.values.push_back(whole() ? Value(static_cast<std::uint64_t>(number)) : Value(number));
            check(node, choice.values.back());
        }
    }
};

/// The keys of one [[run]], or of the top of the file.
struct Block {
    std::map<std::string, Choice> choices{};
    const toml::node* seeds = nullptr;
};

const Setting* find_setting(std::string_view name) {
    if (name == "spectrum_checksum") return nullptr;  // users cannot set it
    for (const Setting& setting : setting_table()) {
        if (setting.name == name) return &setting;
    }
    return nullptr;
}

Block read_block(const Source& source, const toml::table& table, const std::set<std::string>& besides) {
    Block block;
    for (const auto& [key, node] : table) {
        const std::string name(key.str());
        if (besides.contains(name)) continue;
        if (name == "seeds") {
            block.seeds = &node;
            continue;
        }
        const Setting* setting = find_setting(name);
        if (!setting) {
            std::vector<std::string> known(besides.begin(), besides.end());
            for (const Setting& other : setting_table()) {
                if (find_setting(other.name)) known.push_back(other.name);
            }
            known.emplace_back("seeds");
            source.reject(key.source().begin,
                          fmt::format("unknown key '{}'; known are {}", name, fmt::join(known, ", ")));
        }
        block.choices.emplace(name, ChoiceReader{source, *setting}.read(node));
    }
    return block;
}

/// `seeds` is a count, from `seed` on, or a list of seeds.
void expand_seeds(const Source& source, Block& block) {
    if (!block.seeds) return;
    const Setting& setting = *find_setting("seed");
    if (block.seeds->is_array()) {
        if (block.choices.contains("seed")) {
            source.reject(*block.choices["seed"].node, "seed must be left out where seeds is a list");
        }
        block.choices["seed"] = ChoiceReader{source, setting}.read(*block.seeds);
        return;
    }
    const auto* count = block.seeds->as_integer();
    if (!count || count->get() < 1 || static_cast<std::uint64_t>(count->get()) > source.most_points) {
        source.reject(*block.seeds,
                      fmt::format("seeds must be how many (at least 1) or a list of seeds, got {}",
                                  describe(*block.seeds)));
    }
    Choice& seed = block.choices["seed"];
    if (seed.values.size() > 1)
        source.reject(*seed.node, "seed must be one number where seeds says how many");
    const std::uint64_t first = seed.values.empty() ? 0 : std::get<std::uint64_t>(seed.values[0]);
    seed = {block.seeds};
    for (std::int64_t i = 0; i < count->get(); ++i)
        seed.values.emplace_back(first + static_cast<std::uint64_t>(i));
}

/// Every combination of the values of one run.
struct Expansion {
    const Source& source;
    const Block& block;
    const toml::table& table;
    const std::filesystem::path& directory;
    std::vector<Task>& tasks;

    /// Adds the tasks that differ from this one in the settings from the index-th on.
    void choose(std::size_t index, Task task) const {
        if (index == setting_table().size()) {
            if (tasks.size() >= source.most_points)
                source.reject(table, fmt::format("a study must have at most {} points", source.most_points));
            tasks.push_back(std::move(task));
            return;
        }
        const Setting& setting = setting_table()[index];
        if (setting.name == "integration_points") check_problem(task);  // prior and channel are set by now
        const auto found = block.choices.find(setting.name);
        if (found == block.choices.end() || !applies(task, setting))
            return choose(index + 1, std::move(task));
        std::vector<Value> values = found->second.values;
        if (const auto& relative = found->second.relative) {
            source.at(*found->second.node, [&] {
                for (const double alpha : relative->values(strong_recovery(task))) values.emplace_back(alpha);
            });
        }
        for (const Value& value : values) {
            set(task, setting, value);
            if (setting.name == "spectrum") read_spectrum(*found->second.node, task);
            if (setting.name == "alpha") check_data(*found->second.node, task);
            choose(index + 1, task);
        }
    }

    void read_spectrum(const toml::node& node, Task& task) const {
        task.spectrum = (directory / task.spectrum).lexically_normal().string();
        task.spectrum_checksum =
            source.at(node, [&] { return fingerprint(read_whole("spectrum", task.spectrum)); });
    }

    /// Theory is defined without data; AMP and gradient descent need some.
    void check_data(const toml::node& node, const Task& task) const {
        if (task.alpha == 0 && takes(find_row(estimator_table(), "estimator", task.estimator), "dim"))
            source.reject(node, fmt::format("alpha of estimator {} must be positive, got 0", task.estimator));
    }

    /// Reports values that do not fit together at the key that the message names.
    void check_problem(const Task& task) const {
        try {
            make_model(task);
            if (const auto& check = find_row(estimator_table(), "estimator", task.estimator).check)
                check(task);
        } catch (const InvalidArgument& error) {
            const std::string message = error.what();
            for (const char* name :
                 {"tokens", "beta", "layers", "residual", "width", "spectrum", "channel", "prior"}) {
                const auto found = block.choices.find(name);
                if (found == block.choices.end() || message.find(name) == std::string::npos) continue;
                source.reject(*found->second.node, message);
            }
            source.reject(table, message);
        }
    }
};

/// Refuses a setting that no estimator, prior or channel of these tasks has.
void check_used(const Source& source, const Block& block, const std::vector<Task>& tasks) {
    const auto check = [&](const std::string& name, const Setting& setting, const toml::node& node) {
        const auto has = [&](const Task& task) { return applies(task, setting); };
        if (std::any_of(tasks.begin(), tasks.end(), has)) return;
        source.reject(node,
                      fmt::format("{} is not a setting of estimator {} with prior {} and channel {}", name,
                                  tasks.front().estimator, tasks.front().prior, tasks.front().channel));
    };
    for (const auto& [name, choice] : block.choices) check(name, *find_setting(name), *choice.node);
    if (block.seeds) check("seeds", *find_setting("seed"), *block.seeds);
}

void add_run(const Source& source, const toml::table& table, const std::filesystem::path& directory,
             const Block& own, const Block& common, std::vector<Task>& tasks) {
    Block all = own;
    all.choices.insert(common.choices.begin(), common.choices.end());
    if (!all.seeds) all.seeds = common.seeds;
    expand_seeds(source, all);
    for (const char* name : {"estimator", "alpha"}) {
        if (!all.choices.contains(name)) {
            source.reject(table, fmt::format("{} is missing; a run needs estimator and alpha", name));
        }
    }
    std::vector<Task> added;
    Expansion{source, all, table, directory, added}.choose(0, {});
    check_used(source, own, added);
    tasks.insert(tasks.end(), added.begin(), added.end());
}

}  // namespace

Experiment parse_experiment(std::string_view text, const std::string& source_name,
                            const std::filesystem::path& directory, std::size_t most_points) {
    const Source source{source_name, most_points};
    toml::table file;
    try {
        file = toml::parse(text);
    } catch (const toml::parse_error& error) {
        std::string message(error.description());
        std::replace(message.begin(), message.end(), '\n', ' ');
        source.reject(error.source().begin, message);
    }
    Experiment experiment;
    if (const toml::node* name = file.get("name")) {
        if (!name->is_string())
            source.reject(*name, fmt::format("name must be text, got {}", describe(*name)));
        experiment.name = name->as_string()->get();
        const std::string& title = experiment.name;
        if (title.empty() || title == "." || title == ".." || title.find('/') != std::string::npos ||
            title != printable(title)) {
            source.reject(
                *name, printable(fmt::format("name must be the name of a directory, in printable letters and "
                                             "without '/', got '{}'",
                                             title)));
        }
    }
    const Block common = read_block(source, file, {"name", "run"});
    if (const toml::node* runs = file.get("run")) {
        const auto* list = runs->as_array();
        if (!list || list->empty() || !list->is_homogeneous(toml::node_type::table)) {
            source.reject(*runs, fmt::format("run must be written as [[run]], got {}", describe(*runs)));
        }
        for (const toml::node& run : *list) {
            const toml::table& table = *run.as_table();
            add_run(source, table, directory, read_block(source, table, {}), common, experiment.tasks);
        }
        check_used(source, common, experiment.tasks);
    } else {
        add_run(source, file, directory, common, {}, experiment.tasks);
    }
    for (Task& task : experiment.tasks) {  // as in make_model
        if (task.prior == Task{}.prior && task.attention != Task{}.attention) task.prior = "bilinear";
    }
    std::set<std::string> seen;
    std::erase_if(experiment.tasks, [&](const Task& task) { return !seen.insert(canonical(task)).second; });
    return experiment;
}

Experiment read_experiment(const std::filesystem::path& file) {
    Experiment experiment = parse_experiment(read_whole("study", file), file.string(), file.parent_path());
    if (experiment.name.empty()) experiment.name = file.stem().string();
    return experiment;
}

}  // namespace bayesaim::experiments
