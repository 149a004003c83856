// A drawing with its layout as SVG.
#pragma once

#include <string>
#include <string_view>

#include "apps/draw/layout.h"

namespace tagflow::apps::draw {

// `text` for XML and HTML: between tags, and in double quotes. Control
// characters, which XML cannot hold, and broken UTF-8 become U+FFFD.
std::string escape_markup(std::string_view text);

// The rules of style that to_svg() relies on.
std::string_view svg_style();

// An <svg> element that stands for itself: boxes with id "n0", "n1", ...,
// arrows "e0", ..., frames "f1", ...; with its style where `is_alone`.
std::string to_svg(const Drawing& drawing, const Layout& layout,
                   bool is_alone = true);

}  // namespace tagflow::apps::draw
