#include "autodiff/explain.h"

namespace tagflow::autodiff {

std::string kept_name(Kept kept) {
  switch (kept) {
    case Kept::kSaved:
      return "saved";
    case Kept::kSavedEvery:
      return "every k-th";
    case Kept::kReused:
      return "reused";
    case Kept::kCounted:
      return "counted";
    case Kept::kRecomputed:
      return "recomputed";
    case Kept::kOutside:
      return "outside";
    case Kept::kConstant:
      return "constant";
    case Kept::kKnownShape:
      return "known shape";
  }
  return "";
}

}  // namespace tagflow::autodiff
