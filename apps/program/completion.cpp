// SPDX-License-Identifier: MIT
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "program/documentation.hpp"

namespace bayesaim::program {
namespace {

/// What completes the value of an option: "values a b c", "file", "directory", "nothing" (a number, say). A flag has no
/// value, and no kind.
std::string kind_of(const OptionDescription& option) {
    if (option.flag) return "";
    if (!option.values.empty()) return fmt::format("values {}", fmt::join(option.values, " "));
    const std::string& type = option.type.empty() ? option.names.front() : option.type;
    if (type.find("DIR") != std::string::npos) return "directory";
    if (type.find("FILE") != std::string::npos || type.ends_with(".h5")) return "file";
    return "nothing";
}

constexpr const char* bash_functions = R"bash(
# What completes the value of option $2 of command $1; nothing is printed for a flag.
_bayesaim_value() {
    case "$1 $2" in
@VALUES@
    esac
}

# What completes positional argument number $2 of command $1.
_bayesaim_argument() {
    case "$1 $2" in
@ARGUMENTS@
    esac
}

_bayesaim_options() {
    case "$1" in
@OPTIONS@
    esac
}

_bayesaim() {
    COMPREPLY=()
    local words=() word i
    # bash makes three words of --format=csv
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        [[ $word == "=" ]] || words+=("$word")
    done
    [[ ${COMP_WORDS[COMP_CWORD]} != "=" ]] || words+=("")
    local last=$((${#words[@]} - 1))
    local current=${words[last]} command=${words[0]}

    if ((last == 0)); then
        local known="@COMMANDS@"
        [[ $current != -* ]] || known=$(_bayesaim_options "")
        mapfile -t COMPREPLY < <(compgen -W "$known" -- "$current")
        return
    fi
    local kind="" given=" " arguments=0
    for ((i = 1; i < last; i++)); do
        word=${words[i]}
        if [[ -n $kind ]]; then
            kind=""
        elif [[ $word == -* ]]; then
            given+="$word "
            kind=$(_bayesaim_value "$command" "$word")
        else
            arguments=$((arguments + 1))
        fi
    done
    [[ -n $kind || $current == -* ]] || kind=$(_bayesaim_argument "$command" "$arguments")
    local options=()
    case "$kind" in
        nothing) ;;
        file) compopt -o default ;;
        directory) compopt -o dirnames ;;
        values*) mapfile -t COMPREPLY < <(compgen -W "${kind#values }" -- "$current") ;;
        *)
            for word in $(_bayesaim_options "$command"); do
                [[ $given == *" $word "* ]] || options+=("$word")
            done
            mapfile -t COMPREPLY < <(compgen -W "${options[*]}" -- "$current")
            ;;
    esac
}

complete -F _bayesaim bayesaim
)bash";

void replace(std::string& text, const std::string& mark, const std::string& by) {
    text.replace(text.find(mark), mark.size(), by);
}

/// Arms of a `case`, one for each kind.
std::string arms(const std::map<std::string, std::vector<std::string>>& patterns) {
    std::string text;
    for (const auto& [kind, places] : patterns)
        text += fmt::format("{}        {}) echo \"{}\" ;;", text.empty() ? "" : "\n",
                            fmt::join(places, " | "), kind);
    return text;
}

std::string names(const CommandDescription& command) {
    std::string text;
    for (const OptionDescription& option : command.options) {
        for (const std::string& name : option.names) {
            if (name.starts_with("--")) text += (text.empty() ? "" : " ") + name;
        }
    }
    return text;
}

/// A word of zsh, in single quotes; `special` characters get a backslash.
std::string quote(const std::string& text, std::string_view special = "") {
    std::string result;
    for (const char c : text) {
        if (special.find(c) != std::string_view::npos) result += '\\';
        result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return result;
}

/// The first line of a description, without the colon that announces more.
std::string first_line(const std::string& description) {
    std::string line = description.substr(0, description.find('\n'));
    while (line.ends_with(':') || line.ends_with(';')) line.pop_back();
    return line;
}

/// An argument of _arguments.
std::string zsh_spec(const OptionDescription& option, int position) {
    const std::string kind = kind_of(option);
    std::string action = " ";
    if (kind.starts_with("values ")) action = fmt::format("({})", kind.substr(7));
    if (kind == "file") action = "_files";
    if (kind == "directory") action = "_files -/";
    const std::string& type = option.type.empty() ? option.names.front() : option.type;
    const std::string value = fmt::format("{}:{}", quote(type, ":\\"), action);
    if (option.positional)
        return option.repeated ? fmt::format("'*:{}'", value) : fmt::format("'{}:{}'", position, value);
    const std::string about = quote(first_line(option.description), "[]\\");
    if (option.names.front() == "-h") return fmt::format("'(- *)'{{-h,--help}}'[{}]'", about);
    if (option.names.front() == "--version") return fmt::format("'(- *)--version[{}]'", about);
    std::string specs;
    for (const std::string& name : option.names)
        specs += fmt::format("{}'{}{}[{}]{}'", specs.empty() ? "" : " ", name, option.flag ? "" : "=", about,
                             option.flag ? "" : ":" + value);
    return specs;
}

std::string zsh_arguments(const CommandDescription& command, const std::string& indentation) {
    std::string text;
    int position = 0;
    for (const OptionDescription& option : command.options)
        text += fmt::format(" \\\n{}{}", indentation, zsh_spec(option, option.positional ? ++position : 0));
    return text;
}

}  // namespace

std::string bash_completion(const ProgramDescription& program) {
    std::map<std::string, std::vector<std::string>> values, arguments, options;
    std::string commands;
    options[names(program)].push_back("\"\"");
    for (const CommandDescription& command : program.commands) {
        commands += (commands.empty() ? "" : " ") + command.name;
        options[names(command)].push_back(command.name);
        int position = 0;
        for (const OptionDescription& option : command.options) {
            const std::string kind = kind_of(option);
            if (option.positional) {
                arguments[kind].push_back(option.repeated
                                              ? fmt::format("\"{} \"*", command.name)
                                              : fmt::format("\"{} {}\"", command.name, position++));
            } else if (!kind.empty()) {
                for (const std::string& name : option.names)
                    values[kind].push_back(fmt::format("\"{} {}\"", command.name, name));
            }
        }
    }
    std::string text = bash_functions;
    replace(text, "@VALUES@", arms(values));
    replace(text, "@ARGUMENTS@", arms(arguments));
    replace(text, "@OPTIONS@", arms(options));
    replace(text, "@COMMANDS@", commands);
    return fmt::format("# Completion of {} {} for bash, written by the program from its tables of options.{}",
                       program.name, program.version, text.insert(0, "\n"));
}

std::string zsh_completion(const ProgramDescription& program) {
    std::string commands, cases;
    for (const CommandDescription& command : program.commands) {
        commands += fmt::format("\n                '{}:{}'", command.name,
                                quote(first_line(command.description), ":\\"));
        cases += fmt::format("\n                {})\n                    _arguments{} ;;", command.name,
                             zsh_arguments(command, "                        "));
    }
    return fmt::format(R"zsh(#compdef {0}
# Completion of {0} {1} for zsh, written by the program from its tables of options.
_{0}() {{
    local context state state_descr line
    typeset -A opt_args
    _arguments -C{2} \
        '1: :->command' '*:: :->arguments' && return
    case $state in
        command)
            local -a commands=({3}
            )
            _describe -t commands command commands ;;
        arguments)
            case $words[1] in{4}
            esac ;;
    esac
}}

_{0} "$@"
)zsh",
                       program.name, program.version, zsh_arguments(program, "        "), commands, cases);
}

}  // namespace bayesaim::program
