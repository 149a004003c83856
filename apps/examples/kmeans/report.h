// The output files of the program: a picture and a report.
#pragma once

#include <filesystem>
#include <string>

#include "actors/session/session.h"
#include "apps/examples/kmeans/kmeans.h"
#include "apps/shared/io/png.h"

namespace tagflow::kmeans {

// The centroids as enlarged pictures of `side` x `side` pixels, side by side in
// rows. REQUIRES: features == side * side.
io::Picture draw_centroids(const Tensor& centroids, int side);

// Markdown: the figures of the run, and a row for each cluster.
std::string format_report(const Problem& problem, const Solution& solution,
                          const Tensor& labels, const actors::RunStats& stats);

}  // namespace tagflow::kmeans
