// SPDX-License-Identifier: MIT
#include "bayesaim/core/record.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"

namespace bayesaim {

Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;

std::optional<double> Value::number() const {
    if (const auto* real = as<double>()) return *real;
    if (const auto* whole = as<std::int64_t>()) return static_cast<double>(*whole);
    if (const auto* whole = as<std::uint64_t>()) return static_cast<double>(*whole);
    return std::nullopt;
}

double number_of(const std::string& name, const Value& value) {
    if (const auto number = value.number()) return *number;
    if (const auto* text = value.as<std::string>())
        throw_invalid(name, "a number", fmt::format("'{}'", *text));
    throw InvalidArgument(fmt::format("{} must be a number", name));
}

Record::Record(std::initializer_list<Field> fields) : fields_(fields) {}

const Value* Record::find(std::string_view name) const {
    const auto found = std::ranges::find(fields_, name, &Field::first);
    return found == fields_.end() ? nullptr : &found->second;
}

Value& Record::operator[](std::string_view name) {
    for (Field& field : fields_) {
        if (field.first == name) return field.second;
    }
    return fields_.emplace_back(std::string(name), Value()).second;
}

void Record::update(const Record& other) {
    for (const Field& field : other.fields_) (*this)[field.first] = field.second;
}

void Record::erase(std::string_view name) {
    std::erase_if(fields_, [&](const Field& field) { return field.first == name; });
}

}  // namespace bayesaim
