// SPDX-License-Identifier: MIT
#include "bayesaim/core/record.hpp"

#include <algorithm>

namespace bayesaim {

Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;

Record::Record(std::initializer_list<Field> fields) : fields_(fields) {}

const Value* Record::find(std::string_view name) const {
    const auto found =
        std::find_if(fields_.begin(), fields_.end(), [&](const Field& field) { return field.first == name; });
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
