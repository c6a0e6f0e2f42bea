// SPDX-License-Identifier: MIT
// Includes inside src/bayesaim point down the layers only, and only linalg/ names BLAS or LAPACK, or includes
// Eigen's decompositions:
//   core < linalg < numerics < spectral < priors, denoisers, channels < losses < model < theory | data, estimators
//        < experiments < figures
// Above them all is bayesaim.hpp, which has includes only, and which no file of ours includes.
// theory and (data, estimators) never see each other, so that their agreement is a real test.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

/// For each folder, the other folders whose headers it may include.
const std::map<std::string, std::set<std::string>>& allowed_includes() {
    static const std::map<std::string, std::set<std::string>> table = {
        {"core", {}},
        {"linalg", {"core"}},
        {"numerics", {"core", "linalg"}},
        {"spectral", {"core", "linalg", "numerics"}},
        {"priors", {"core", "linalg", "numerics", "spectral"}},
        {"channels", {"core", "linalg", "numerics", "spectral"}},
        {"denoisers", {"core", "linalg", "numerics", "spectral"}},
        {"losses", {"core", "linalg", "numerics", "spectral", "channels"}},
        {"model", {"core", "linalg", "numerics", "spectral", "priors", "channels", "denoisers"}},
        {"theory", {"core", "linalg", "numerics", "spectral", "priors", "channels", "losses", "denoisers", "model"}},
        {"data", {"core", "linalg", "numerics", "spectral", "priors", "channels", "denoisers", "model"}},
        {"estimators",
         {"core", "linalg", "numerics", "spectral", "priors", "channels", "losses", "denoisers", "model", "data"}},
        {"experiments",
         {"core", "linalg", "numerics", "spectral", "priors", "channels", "losses", "denoisers", "model", "theory",
          "data", "estimators"}},
        {"figures",
         {"core", "linalg", "numerics", "spectral", "priors", "channels", "losses", "denoisers", "model", "theory",
          "data", "estimators", "experiments"}},
        {"testing", {"core", "linalg", "numerics", "spectral", "priors", "channels", "denoisers"}},
    };
    return table;
}

/// The header above all layers.
const std::string umbrella = "bayesaim.hpp";

bool may_include(const std::string& from, const std::string& to) {
    const auto row = allowed_includes().find(from);
    return row != allowed_includes().end() && (from == to || row->second.contains(to));
}

std::string without_comment(const std::string& line) { return line.substr(0, line.find("//")); }

/// What is wrong with one line of a file in `folder`, if anything.
std::optional<std::string> violation(const std::string& folder, const std::string& full_line) {
    static const std::regex own_include(R"(^\s*#\s*include\s*["<]bayesaim/(?:([^/">]+)/)?[^">]*[">])");
    static const std::regex quoted_include(R"(^\s*#\s*include\s*")");
    static const std::regex blas(
        R"(\b(cblas_|LAPACKE_|openblas_)|\b[sdcz](gemm|gemv|symm|symv|syrk|syr2k|trmm|trsm|ger|dot|nrm2|axpy|scal)"
        R"(|syev|syevd|syevr|syevx|stevd|sterf|steqr|potrf|potrs|getrf|getrs|gesv|gesvd|gesdd|geqrf|orgqr)_\b)"
        R"(|<(cblas|f77blas|lapacke)\.h>)");

    static const std::regex decompositions(R"(^\s*#\s*include\s*<(Eigen/(?!Core>)\w+)>)");

    const std::string line = without_comment(full_line);
    std::smatch match;
    if (std::regex_search(line, match, own_include)) {
        const std::string to = match[1].str();
        if (!may_include(folder, to))
            return folder + "/ may not include " + (to.empty() ? "bayesaim/*.hpp" : to + "/");
    } else if (std::regex_search(line, quoted_include)) {
        return "project headers are included by their full path, \"bayesaim/...\"; others in <>";
    }
    if (folder != "linalg" && std::regex_search(line, match, blas)) {
        return "only linalg/ may name BLAS or LAPACK, found " + match[0].str();
    }
    if (folder != "linalg" && std::regex_search(line, match, decompositions)) {
        return "only linalg/ may include " + match[1].str() +
               ", which takes seconds to compile; see linalg/*.hpp";
    }
    return std::nullopt;
}

std::vector<fs::path> source_files(const fs::path& root) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
        const std::string extension = entry.path().extension().string();
        if (extension == ".hpp" || extension == ".cpp" || extension == ".in") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

TEST(Layers, IncludesPointDownAndOnlyLinalgDecomposes) {
    const fs::path root = fs::path(BAYESAIM_SOURCE_DIR) / "src" / "bayesaim";
    const std::vector<fs::path> files = source_files(root);
    ASSERT_FALSE(files.empty()) << "no sources below " << root;
    for (const fs::path& file : files) {
        const fs::path relative = file.lexically_relative(root);
        if (relative == umbrella) continue;
        const std::string folder = relative.begin()->string();  // a file in no folder has no place either
        ASSERT_TRUE(allowed_includes().contains(folder))
            << "folder " << folder << "/ has no place in the layers";

        std::ifstream stream(file);
        std::string line;
        for (int number = 1; std::getline(stream, line); ++number) {
            const auto problem = violation(folder, line);
            EXPECT_FALSE(problem.has_value()) << file.string() << ':' << number << ": " << *problem;
        }
    }
}

TEST(Layers, UmbrellaHeaderHasIncludesOnly) {
    std::ifstream stream(fs::path(BAYESAIM_SOURCE_DIR) / "src" / "bayesaim" / umbrella);
    ASSERT_TRUE(stream) << umbrella;
    const std::regex allowed(R"(\s*|#pragma once|#include "bayesaim/[^/"]+/[^"]+")");
    std::string line;
    for (int number = 1; std::getline(stream, line); ++number)
        EXPECT_TRUE(std::regex_match(without_comment(line), allowed)) << number << ": " << line;
}

TEST(Layers, TableHasNoCycle) {
    for (const auto& [from, targets] : allowed_includes()) {
        for (const std::string& to : targets) {
            ASSERT_TRUE(allowed_includes().contains(to)) << from << " -> " << to;
            EXPECT_FALSE(allowed_includes().at(to).contains(from)) << from << " <-> " << to;
        }
    }
}

TEST(Layers, AcceptsIncludesThatPointDown) {
    EXPECT_FALSE(violation("core", R"(#include "bayesaim/core/checks.hpp")"));
    EXPECT_FALSE(violation("numerics", R"(#include "bayesaim/linalg/decompositions.hpp")"));
    EXPECT_FALSE(violation("denoisers", R"(#include "bayesaim/spectral/spectral_law.hpp")"));
    EXPECT_FALSE(violation("theory", R"(#include "bayesaim/model/model.hpp")"));
    EXPECT_FALSE(violation("estimators", R"(#include "bayesaim/data/dataset.hpp")"));
    EXPECT_FALSE(violation("testing", R"(#include "bayesaim/channels/channel.hpp")"));
    EXPECT_FALSE(violation("figures", R"(#include "bayesaim/experiments/sweep.hpp")"));
    EXPECT_FALSE(violation("core", "#include <vector>"));
}

TEST(Layers, RejectsIncludesThatPointUpOrAcross) {
    EXPECT_TRUE(violation("core", R"(#include "bayesaim/linalg/blas.hpp")"));
    EXPECT_TRUE(violation("linalg", R"(#include "bayesaim/numerics/roots.hpp")"));
    EXPECT_TRUE(violation("numerics", R"(#include "bayesaim/spectral/spectral_law.hpp")"));
    EXPECT_TRUE(violation("spectral", R"(#include "bayesaim/priors/wishart.hpp")"));
    EXPECT_TRUE(violation("priors", R"(#include "bayesaim/denoisers/joint.hpp")"));
    EXPECT_TRUE(violation("channels", R"(#include "bayesaim/priors/prior.hpp")"));
    EXPECT_TRUE(violation("denoisers", R"(#include "bayesaim/channels/channel.hpp")"));
    EXPECT_TRUE(violation("denoisers", R"(#include "bayesaim/priors/prior.hpp")"));
    EXPECT_TRUE(violation("channels", R"(#include "bayesaim/model/model.hpp")"));
    EXPECT_TRUE(violation("theory", R"(#include "bayesaim/estimators/amp.hpp")"));
    EXPECT_TRUE(violation("theory", R"(#include "bayesaim/data/dataset.hpp")"));
    EXPECT_TRUE(violation("data", R"(#include "bayesaim/theory/state_evolution.hpp")"));
    EXPECT_TRUE(violation("data", R"(#include "bayesaim/estimators/amp.hpp")"));
    EXPECT_TRUE(violation("estimators", "  #  include <bayesaim/theory/state_evolution.hpp>"));
    EXPECT_TRUE(violation("testing", R"(#include "bayesaim/theory/state_evolution.hpp")"));
    EXPECT_TRUE(violation("experiments", R"(#include "bayesaim/figures/figure.hpp")"));
}

TEST(Layers, RejectsIncludesThatHideTheirLayer) {
    EXPECT_TRUE(violation("core", R"(#include "../linalg/blas.hpp")"));
    EXPECT_TRUE(violation("core", R"(#include "bayesaim/bayesaim.hpp")"));
    EXPECT_TRUE(violation("core", R"(#include "bayesaim/unheard_of/thing.hpp")"));
}

TEST(Layers, RejectsBlasOutsideLinalg) {
    for (const std::string line :
         {"dgemm_(\"N\", \"T\", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);",
          "extern \"C\" void dsyevd_(const char*);", "cblas_dgemm(CblasColMajor);", "LAPACKE_dsyevd(1);",
          "openblas_set_num_threads(1);", "#include <cblas.h>"}) {
        EXPECT_TRUE(violation("core", line)) << line;
        EXPECT_TRUE(violation("estimators", line)) << line;
        EXPECT_FALSE(violation("linalg", line)) << line;
    }
    EXPECT_FALSE(violation("core", "// BLAS is pinned by openblas_set_num_threads in linalg/"));
    EXPECT_FALSE(violation("spectral", ": size_(n), scale_(s), density_(d) {}"));
}

TEST(Layers, RejectsDecompositionsOfEigenOutsideLinalg) {
    for (const std::string header : {"Dense", "LU", "Cholesky", "Eigenvalues", "QR", "SVD"}) {
        const std::string line = "#include <Eigen/" + header + ">";
        EXPECT_TRUE(violation("channels", line)) << line;
        EXPECT_TRUE(violation("numerics", "  #  include <Eigen/" + header + ">")) << line;
        EXPECT_FALSE(violation("linalg", line)) << line;
    }
    EXPECT_FALSE(violation("channels", "#include <Eigen/Core>"));
}

}  // namespace
