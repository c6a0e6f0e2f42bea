// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "bayesaim/core/text.hpp"

#include "program/documentation.hpp"

namespace bayesaim::program {
namespace {

/// Text of a manual page. `words` between backticks are set in bold; the page has no backticks.
std::string escape(std::string_view text) {
    std::string result;
    bool bold = false;
    for (const char c : text) {
        switch (c) {
            case '\\':
                result += "\\e";
                break;
            case '-':
                result += "\\-";
                break;  // a minus sign can be copied to a shell, a hyphen cannot
            case '^':
                result += "\\(ha";
                break;
            case '~':
                result += "\\(ti";
                break;
            case '\'':
                result += "\\(aq";
                break;
            case '`':
                bold = !bold;
                result += bold ? "\\fB" : "\\fR";
                break;
            default:
                result += c;
        }
    }
    return result.starts_with('.') ? "\\&" + result : result;
}

std::string in_capitals(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
    return text;
}

std::string heading(const ProgramDescription& program, const std::string& page, const std::string& summary) {
    return fmt::format(
        ".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n"
        ".nh\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
        escape(in_capitals(page)), program.name, program.version, escape(page), escape(summary));
}

/// Lines of a description. Those that explain one of the values, "  softmax: y = ..", become items; the others
/// were broken to fit a terminal, and are joined again.
std::string explain(const OptionDescription& option) {
    std::string text;
    bool items = false;
    for (std::string_view line : split(option.description, '\n')) {
        line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
        const std::string_view word = line.substr(0, line.find(':'));
        const bool item =
            word.size() < line.size() && std::ranges::find(option.values, word) != option.values.end();
        if (item) {
            text += items ? "" : ".RS\n";
            items = true;
            line.remove_prefix(word.size() + 1);
            line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
            text += fmt::format(".TP\n\\fB{}\\fR\n", escape(word));
        }
        text += escape(line) + "\n";
    }
    if (items) text += ".RE\n";
    std::string remark;
    if (option.required && !option.positional) remark = "Required.";
    if (!option.default_text.empty()) remark = fmt::format("Default: {}.", escape(option.default_text));
    return remark.empty() ? text : fmt::format("{}{}\n{}\n", text, items ? ".IP" : ".br", remark);
}

std::string list(const std::vector<OptionDescription>& options, bool positional) {
    std::string text;
    for (const OptionDescription& option : options) {
        if (option.positional != positional) continue;
        std::string names;
        for (const std::string& name : option.names)
            names +=
                fmt::format("{}\\f{}{}\\fR", names.empty() ? "" : ", ", positional ? 'I' : 'B', escape(name));
        if (!option.type.empty() && !positional) names += fmt::format(" \\fI{}\\fR", escape(option.type));
        text += fmt::format(".TP\n{}\n{}", names, explain(option));
    }
    return text;
}

/// The remarks of a footer, and its indented examples.
std::string describe_footer(const std::string& footer) {
    std::string remarks, examples;
    bool in_examples = false;
    for (const std::string_view line : split(footer, '\n')) {
        if (line == "Example:" || line == "Examples:") {
            in_examples = true;
        } else if (!line.empty()) {
            (in_examples ? examples : remarks) +=
                (in_examples || remarks.empty() ? "" : ".br\n") + escape(line) + "\n";
        }
    }
    std::string text;
    if (!remarks.empty()) text += ".SH NOTES\n" + remarks;
    if (!examples.empty()) text += ".SH EXAMPLES\n.EX\n" + examples + ".EE\n";
    return text;
}

}  // namespace

std::string man_page(const ProgramDescription& program) {
    // whatis takes the first words: the name of the page, and what it is.
    std::string text =
        heading(program, program.name, program.description.substr(0, program.description.find(':')));
    text += fmt::format("\\fB{}\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n", program.name);
    text += fmt::format(".SH DESCRIPTION\n{}\n", escape(program.description));
    text += fmt::format(".SH COMMANDS\n\\fBman {}\\-COMMAND\\fR explains each.\n", program.name);
    for (const CommandDescription& command : program.commands)
        text += fmt::format(".TP\n\\fB{}\\fR\n{}.\n", escape(command.name), escape(command.description));
    text += ".SH OPTIONS\n" + list(program.options, false);
    text +=
        ".SH EXIT STATUS\n"
        ".TP\n0\nThe command is done. If points did not converge, a line on standard error counts them.\n"
        ".TP\n1\nA bad option or input file. One line names the argument, the values it takes and the value "
        "it got.\n"
        ".TP\n2\nSome points failed or are missing; with \\fB\\-\\-strict\\fR also if some did not "
        "converge.\n"
        "\\fBfit\\fR: the data are not those of the model.\n"
        ".TP\n3\n\\fBrerun\\fR found different bits.\n"
        ".TP\n130\nInterrupted by Ctrl\\-C, SIGTERM or SIGHUP.\n";
    text += describe_footer(program.footer) + ".SH SEE ALSO\n";
    for (const CommandDescription& command : program.commands)
        text += fmt::format("\\fB{}\\-{}\\fR(1){}\n", program.name, escape(command.name),
                            &command == &program.commands.back() ? "" : ",");
    return text;
}

std::string man_page(const ProgramDescription& program, const CommandDescription& command) {
    std::string text =
        heading(program, fmt::format("{}-{}", program.name, command.name), command.description);
    text += fmt::format("\\fB{} {}\\fR [\\fIOPTIONS\\fR]", program.name, escape(command.name));
    for (const OptionDescription& option : command.options) {
        if (option.positional)
            text += fmt::format(" \\fI{}\\fR{}", escape(option.names.front()), option.repeated ? "..." : "");
    }
    text += fmt::format("\n.SH DESCRIPTION\n{}.\n", escape(command.description));
    const std::string arguments = list(command.options, true);
    if (!arguments.empty()) text += ".SH ARGUMENTS\n" + arguments;
    text += ".SH OPTIONS\n" + list(command.options, false);
    text += describe_footer(command.footer);
    text += fmt::format(".SH EXIT STATUS\nSee \\fB{0}\\fR(1).\n.SH SEE ALSO\n\\fB{0}\\fR(1)\n", program.name);
    return text;
}

}  // namespace bayesaim::program
