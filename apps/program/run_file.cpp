// SPDX-License-Identifier: MIT
#include "program/run_file.hpp"

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/version.hpp"

#include "program/ranks.hpp"

namespace bayesaim::program {

void CheckpointArguments::add_to(Command& to, const std::string& steps) {
    to.text("--checkpoint", file, "HDF5 file that keeps the state of the computation", "FILE");
    to.count("--checkpoint-every", every, 1, fmt::format("{} between two checkpoints", steps));
    to.flag("--resume", resume, "continue from the checkpoint, with the same bits, on any number of ranks");
}

void CheckpointArguments::check() const {
    if (resume && file.empty()) throw_missing("--resume", "--checkpoint FILE");
    if (speaks() && !resume && !file.empty() && std::filesystem::exists(file))
        throw_invalid("--checkpoint", "a new file, or used with --resume",
                      fmt::format("'{}', which exists", file));
}

const char* CheckpointArguments::remark() const {
    return file.empty() ? "" : "; --resume goes on with the rest";
}

CheckpointFile::CheckpointFile(const CheckpointArguments& arguments, const Report& report)
    : file_(arguments.file) {
    using Json = nlohmann::ordered_json;
    Record settings = {{"bayesaim", version()}, {"command", report.command}};
    settings.update(report.configuration);
    settings_ = to_json_text(settings);
    if (!arguments.resume) return;
    data::Checkpoint checkpoint = data::read_checkpoint(file_);
    const Json made = Json::parse(checkpoint.settings, nullptr, false);
    if (!made.is_object()) throw_invalid("checkpoint", "of this command", fmt::format("'{}'", file_));
    const Json wanted = Json::parse(settings_);
    for (const auto& [key, value] : wanted.items()) {
        const Json other = made.contains(key) ? made[key] : Json(nullptr);
        if (other == value) continue;
        throw_invalid(fmt::format("checkpoint '{}'", file_),
                      fmt::format("of the same settings ({} {})", key, value.dump()),
                      fmt::format("{} {}", key, other.dump()));
    }
    if (made.size() != wanted.size())
        throw_invalid("checkpoint", "of the same settings", fmt::format("'{}'", file_));
    state_ = std::move(checkpoint.state);
}

bool CheckpointFile::writes() const { return named() && speaks(); }

void CheckpointFile::write(data::SavedState state) const {
    if (writes()) data::write_checkpoint(file_, {settings_, std::move(state)});
}

}  // namespace bayesaim::program
