// Tags in words, with all frames around: "outer/2/inner/3".
#pragma once

#include <cstdint>
#include <string>

#include "actors/runtime/frame.h"

namespace tagflow::actors {

// Note [Tags in words]
// An iteration is named by its frame and its number, behind those of all
// iterations around it but the root's. A call is a frame as well, by the name
// of its function. A deep recursion is cut: join_levels() in actors/plan/tag.h.
//
// Nothing is kept for this: each instance knows the iteration that started it,
// and who asks walks these. All of them live and keep their fields as long as
// something of the instance runs, since an iteration waits for the frames that
// it has started; what was written to them was so before the tokens came that
// started the instance. So these functions are for who works for the instance,
// as its actors and the kernels that they wait for, and for who looks at a step
// at rest. REQUIRES, of a step at rest: the instance was begun in that step.

// Iteration `iteration` of the frame: "outer/2/inner/3"; "root/0" of the
// root's.
std::string tag_text(const FrameInstance& frame, int64_t iteration);
// The frame: "outer/2/inner"; "root".
std::string frame_text(const FrameInstance& frame);
// A frame that the iteration starts, whose instance need not have begun.
std::string frame_text(const FrameInstance& around, int64_t iteration,
                       const FramePlan& child);

}  // namespace tagflow::actors
