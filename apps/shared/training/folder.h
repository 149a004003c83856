// The files of a training in its folder, besides checkpoints.
#pragma once

#include <filesystem>

#include "apps/shared/training/history.h"

namespace tagflow::training {

std::filesystem::path history_file(const std::filesystem::path& folder);
std::filesystem::path loss_picture(const std::filesystem::path& folder);

// Removes the checkpoints of a training, their list, its history and picture;
// other files stay. The folder need not exist. Returns FailedPrecondition if
// a saver uses the folder, and PermissionDenied if a file cannot be removed.
Status remove_training(const std::filesystem::path& folder);

// Draws the first metric over the steps: each step in grey, the moving mean in
// black, and evaluations as dots. Writes nothing if there are no steps.
// Returns the errors of io::write_file().
Status draw_losses(const std::filesystem::path& file, const History& history);

}  // namespace tagflow::training
