// What a training leaves in its folder, beside checkpoints.
#pragma once

#include <filesystem>

#include "apps/training/history.h"

namespace tagflow::training {

std::filesystem::path history_file(const std::filesystem::path& folder);
std::filesystem::path loss_picture(const std::filesystem::path& folder);

// Removes the checkpoints of a training, their list, its history and picture;
// other files stay. No such folder is one without them. FailedPrecondition
// where a saver has the folder, PermissionDenied where a file cannot be
// removed.
Status remove_training(const std::filesystem::path& folder);

// Draws the first metric over the steps, each step in grey, the mean of the
// last ones in black, and evaluations as dots. Nothing where there are no
// steps. PermissionDenied where it cannot be written.
Status draw_losses(const std::filesystem::path& file, const History& history);

}  // namespace tagflow::training
