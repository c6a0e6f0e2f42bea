// SPDX-License-Identifier: MIT
// Makes the coefficients of channels/hardmax/universal.cpp, T = 2 .. 6.
//   hardmax_table nodes.csv               everything; finished work is read from nodes.csv and kept there
//   hardmax_table nodes.csv --tokens 4 --threads 2
//   hardmax_table --rows 2,3,4,5,6        rows of untied attention, without sampling; a minute
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "bayesaim/core/parallel.hpp"

#include "hardmax_table/fit.hpp"
#include "hardmax_table/nodes.hpp"
#include "hardmax_table/rows.hpp"

namespace bayesaim::hardmax_table {
namespace {

int run(const std::string& file, std::vector<int> tokens, std::size_t threads) {
    std::map<std::string, Node> done;
    {
        std::ifstream in(file);
        for (std::string line; std::getline(in, line);) {
            Node node;
            if (std::sscanf(line.c_str(), "%d,%lf,%zu,%d,%d,%lf,%lf", &node.tokens, &node.r, &node.points,
                            &node.draws, &node.shift, &node.p, &node.information) == 7)
                done[node.key()] = node;
        }
    }
    std::ofstream out(file, std::ios::app);
    ThreadPool pool(threads);
    std::mutex mutex;
    for (const int T : tokens) {
        std::vector<Node> missing;
        for (const Node& node : plan(T)) {
            if (!done.contains(node.key())) missing.push_back(node);
        }
        pool.for_each(missing.size(), [&](std::size_t i) {
            const Node node = compute(missing[i]);
            const std::lock_guard lock(mutex);
            done[node.key()] = node;
            out << fmt::format("{},{:.17g},{:.17g}\n", node.key(), node.p, node.information) << std::flush;
        });
    }
    for (const int T : tokens) {
        std::vector<Node> nodes;
        for (const auto& [key, node] : done) {
            if (node.tokens == T) nodes.push_back(node);
        }
        report(T, nodes);
        report_disagreement(T);
    }
    return 0;
}

}  // namespace
}  // namespace bayesaim::hardmax_table

int main(int argc, char** argv) {
    CLI::App app("Coefficients of the universal curve of hardmax attention");
    std::string file;
    std::vector<int> tokens{2, 3, 4, 5, 6};
    std::size_t threads = 0;
    app.add_option("nodes", file, "finished work, one line each; read first, then extended");
    app.add_option("--tokens", tokens, "numbers of tokens")->delimiter(',')->check(CLI::Range(2, 6));
    app.add_option("--threads", threads, "0: all");
    std::vector<int> rows;
    app.add_option("--rows", rows, "lengths of rows of untied attention")
        ->delimiter(',')
        ->check(CLI::Range(2, 8));
    CLI11_PARSE(app, argc, argv);
    for (const int length : rows) bayesaim::hardmax_table::report_row(length);
    if (file.empty()) return 0;
    return bayesaim::hardmax_table::run(file, tokens, threads);
}
