// SPDX-License-Identifier: MIT
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace bayesaim {

/// A value of a result or a setting: what a table, a JSON object or an attribute of a file can hold. A
/// default value is absent. Null in JSON, an empty field in CSV and a dash in a table stand for an absent
/// value, and for a number that is not finite.
class Value {
  public:
    using List = std::vector<Value>;
    using Variant =
        std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, List>;

    Value() = default;
    // Compiled once, in record.cpp: inline, they were most of the code of a command.
    Value(const Value& other);
    Value(Value&& other) noexcept;
    Value& operator=(const Value& other);
    Value& operator=(Value&& other) noexcept;
    ~Value();
    Value(std::nullptr_t) {}
    Value(bool value) : value_(value) {}
    template <std::signed_integral Number>
    Value(Number value) : value_(static_cast<std::int64_t>(value)) {}
    template <std::unsigned_integral Number>
        requires(!std::same_as<Number, bool>)
    Value(Number value) : value_(static_cast<std::uint64_t>(value)) {}
    Value(double value) : value_(value) {}
    Value(std::string value) : value_(std::move(value)) {}
    Value(std::string_view value) : value_(std::string(value)) {}
    Value(const char* value) : value_(std::string(value)) {}
    Value(List value) : value_(std::move(value)) {}
    template <std::convertible_to<Value> Item>
    Value(const std::vector<Item>& values) : value_(List(values.begin(), values.end())) {}
    template <std::convertible_to<Value> Item>
    Value(const std::optional<Item>& value) {
        if (value) *this = Value(*value);
    }

    const Variant& variant() const { return value_; }
    bool absent() const { return std::holds_alternative<std::monostate>(value_); }
    /// The alternative of this type, or null if the value is of another one.
    template <class Alternative>
    const Alternative* as() const {
        return std::get_if<Alternative>(&value_);
    }
    /// The value as a double, or std::nullopt if it is no number.
    std::optional<double> number() const;
    bool operator==(const Value& other) const = default;

  private:
    Variant value_;
};

/// The value as a double. Throws InvalidArgument, "{name} must be a number", if it is none.
double number_of(const std::string& name, const Value& value);

/// Values by name, in the order in which they were first set.
class Record {
  public:
    using Field = std::pair<std::string, Value>;

    Record() = default;
    Record(std::initializer_list<Field> fields);

    /// The value of this name, which is added if there is none.
    Value& operator[](std::string_view name);
    /// Null if there is no value of this name.
    const Value* find(std::string_view name) const;
    bool contains(std::string_view name) const { return find(name) != nullptr; }
    /// Sets every field of the other record here.
    void update(const Record& other);
    void erase(std::string_view name);

    bool empty() const { return fields_.empty(); }
    auto begin() const { return fields_.begin(); }
    auto end() const { return fields_.end(); }
    bool operator==(const Record& other) const = default;

  private:
    std::vector<Field> fields_;
};

}  // namespace bayesaim
