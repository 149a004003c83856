// A drawing with its layout as SVG.
#pragma once

#include <string>
#include <string_view>

#include "apps/shared/draw/layout.h"

namespace tagflow::apps::draw {

// `text` escaped for XML and HTML: between tags, and in double quotes. Control
// characters, which XML cannot hold, and invalid UTF-8 become U+FFFD.
std::string escape_markup(std::string_view text);

// The style sheet that to_svg() needs.
std::string_view svg_style();

// A complete <svg> element: boxes with id "n0", "n1", ..., arrows "e0", ...,
// frames "f1", ...; it includes svg_style() if `is_alone` is true.
std::string to_svg(const Drawing& drawing, const Layout& layout,
                   bool is_alone = true);

}  // namespace tagflow::apps::draw
