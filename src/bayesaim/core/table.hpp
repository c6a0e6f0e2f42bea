// SPDX-License-Identifier: MIT
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "bayesaim/core/checks.hpp"

/// Tables of things that can be chosen by name: each row has a `name` and a `summary`, and may have
/// `options`, the names of the settings it takes. Help texts, refusals, studies, Python and contract tests
/// iterate over them.
namespace bayesaim {

template <class Row>
std::vector<std::string> names_of(const std::vector<Row>& table) {
    std::vector<std::string> names;
    for (const Row& row : table) names.push_back(row.name);
    return names;
}

/// Throws InvalidArgument with the known names if there is no such row; `kind` names the argument.
template <class Row>
const Row& find_row(const std::vector<Row>& table, std::string_view kind, const std::string& name) {
    const auto found = std::ranges::find(table, name, &Row::name);
    return found != table.end() ? *found : table[check_one_of(kind, name, names_of(table))];
}

template <class Row>
bool takes(const Row& row, std::string_view option) {
    return std::find(row.options.begin(), row.options.end(), option) != row.options.end();
}

/// Names of the rows that take an option, for messages.
template <class Row>
std::vector<std::string> takers_of(const std::vector<Row>& table, std::string_view option) {
    std::vector<std::string> names;
    for (const Row& row : table) {
        if (takes(row, option)) names.push_back(row.name);
    }
    return names;
}

}  // namespace bayesaim
