// SPDX-License-Identifier: MIT
// The headers that cmake/PublicHeaders.cmake installs are complete without the others.
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

const fs::path& source_dir() {
    static const fs::path path = BAYESAIM_SOURCE_DIR;
    return path;
}

/// The first group of the pattern in each line that has it.
std::vector<std::string> matches(const fs::path& file, const std::regex& pattern) {
    std::ifstream stream(file);
    std::vector<std::string> found;
    std::smatch match;
    for (std::string line; std::getline(stream, line);) {
        if (std::regex_search(line, match, pattern)) found.push_back(match[1].str());
    }
    return found;
}

std::set<std::string> public_headers() {
    const auto found =
        matches(source_dir() / "cmake" / "PublicHeaders.cmake", std::regex(R"(^\s+(\S+\.hpp)\s*$)"));
    return {found.begin(), found.end()};
}

std::vector<std::string> own_includes(const std::string& header) {
    return matches(source_dir() / "src" / "bayesaim" / header,
                   std::regex(R"(^\s*#\s*include\s*["<]bayesaim/([^">]+))"));
}

/// Headers that are included by one of these but are not one of them.
std::set<std::string> missing(const std::set<std::string>& headers,
                              const std::function<std::vector<std::string>(const std::string&)>& includes) {
    std::set<std::string> result;
    for (const std::string& header : headers) {
        for (const std::string& included : includes(header)) {
            if (!headers.contains(included)) result.insert(header + " includes " + included);
        }
    }
    return result;
}

TEST(PublicHeaders, ExistAndIncludeOnlyEachOther) {
    const auto headers = public_headers();
    ASSERT_GT(headers.size(), 20U);
    for (const std::string& header : headers) {
        EXPECT_TRUE(fs::exists(source_dir() / "src" / "bayesaim" / header)) << header;
    }
    EXPECT_EQ(missing(headers, own_includes), std::set<std::string>{});
}

TEST(PublicHeaders, AnIncludeThatIsNotPublicIsFound) {
    const auto includes = [](const std::string& header) -> std::vector<std::string> {
        if (header == "a.hpp") return {"b.hpp", "c.hpp"};
        return {};
    };
    EXPECT_EQ(missing({"a.hpp", "b.hpp"}, includes), std::set<std::string>{"a.hpp includes c.hpp"});
    EXPECT_EQ(missing({"a.hpp", "b.hpp", "c.hpp"}, includes), std::set<std::string>{});
}

TEST(PublicHeaders, AreAllInTheUmbrellaHeader) {
    auto headers = public_headers();
    EXPECT_EQ(headers.erase("bayesaim.hpp"), 1U) << "the umbrella header is not installed";
    const auto included = own_includes("bayesaim.hpp");
    EXPECT_EQ(std::set<std::string>(included.begin(), included.end()), headers);
    EXPECT_EQ(included.size(), headers.size()) << "a header is included twice";
}

TEST(PublicHeaders, HaveNothingOfTheInside) {
    const std::regex inside(
        R"(hdf5|numpy_file|input_file|json|posteriors/|expectations/|hardmax/|decompositions|)"
        R"(importance_sampling|checkpoint|store)");
    const std::regex other_libraries(
        R"(^\s*#\s*include\s*<((nlohmann|toml\+\+|boost|Random123|CLI)/|hdf5|zip|cblas))");
    for (const std::string& header : public_headers()) {
        EXPECT_FALSE(std::regex_search(header, inside)) << header;
        EXPECT_TRUE(matches(source_dir() / "src" / "bayesaim" / header, other_libraries).empty()) << header;
    }
}

}  // namespace
