// SPDX-License-Identifier: MIT
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace bayesaim::figures {

/// Size of a PDF picture in typographic points (1/72 inch); SVG and PNG keep the proportions.
struct Canvas {
    double width = 480, height = 320;
};

/// Draws with gnuplot. `script` has no lines for terminal and output, which follow from the file's ending
/// (.png, .svg or .pdf). The picture replaces `output` only when it is complete.
void render(const std::string& script, const std::filesystem::path& output, const Canvas& canvas = {});

/// Throws InvalidArgument, with the argument's `name`, unless the file ends in .png, .svg or .pdf. Call it
/// before a long computation.
void check_picture_name(const std::filesystem::path& output, std::string_view name = "picture file");

/// A gnuplot data block `$name << EOD ...`, one row per index, columns of equal length.
std::string data_block(const std::string& name, const std::vector<std::vector<double>>& columns);

/// Colours that colour-blind readers can tell apart (Okabe and Ito), darkest first.
namespace colour {
inline constexpr const char* black = "#000000";
inline constexpr const char* blue = "#0072B2";
inline constexpr const char* vermilion = "#D55E00";
inline constexpr const char* green = "#009E73";
inline constexpr const char* sky = "#56B4E9";
inline constexpr const char* orange = "#E69F00";
inline constexpr const char* purple = "#CC79A7";
inline constexpr const char* grey = "#999999";
}  // namespace colour

}  // namespace bayesaim::figures
