// The text of tags, with all enclosing frames: "outer/2/inner/3".
#pragma once

#include <cstdint>
#include <string>

#include "actors/runtime/frame.h"

namespace tagflow::actors {

// Note [Tags in words]
// The text of an iteration consists of its frame and its number, preceded by
// those of all enclosing iterations except the root's. A call is a frame, too,
// with the name of its function. A frame that is not the root, but named
// "root", has quotes: frame_label() in actors/plan/tag.h. A deep recursion is
// abbreviated: join_levels() there.
//
// No text is stored: each instance knows the iteration that started it, and
// these functions follow these links. All enclosing instances stay valid and
// unchanged as long as the instance runs, since an iteration waits for the
// frames that it has started, and their fields were written before the tokens
// that started the instance arrived. So the actors of the instance, and the
// kernels that they wait for, may call these functions; so may a diagnosis of a
// step at rest. REQUIRES for a step at rest: the instance was begun in that
// step.

// The text of iteration `iteration` of the frame: "outer/2/inner/3"; "root/0"
// for the root.
std::string tag_text(const FrameInstance& frame, int64_t iteration);
// The text of the frame: "outer/2/inner"; "root".
std::string frame_text(const FrameInstance& frame);
// The text of a child frame of the iteration, whose instance need not have
// begun.
std::string frame_text(const FrameInstance& around, int64_t iteration,
                       const FramePlan& child);

}  // namespace tagflow::actors
