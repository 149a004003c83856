// The entries of the comparison with TensorFlow, and how a time becomes a
// figure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/bench/graphs.h"
#include "apps/bench/workload.h"

namespace tagflow::apps {

struct CompareEntry {
  std::string name;
  std::string what;  // for the table
  BenchGraph graph;
  int trips = 0;  // fed if not 0; a run of base_trips is subtracted
  int base_trips = 0;
  double units = 1;  // trips or ops in a run
  double scale = 1;  // from seconds to the unit
  std::string unit;
  bool is_rate = false;  // units per second instead of seconds per unit
  bool every_node_fires = false;
  int threads = 0;            // on both sides; 0: as many as the machine has
  int devices = 1;            // CPUs
  int workers = 0;            // processes that run the graph; 0: this one
  int inner = 1;              // runs in one measurement
  int most_repeats = 10'000;  // a limit on --repeats
  // Measures seconds here, instead of a run of the graph; or empty.
  std::function<Result<double>(const BenchOptions&)> own;
  // Runs before the first measurement; or empty.
  std::function<Status()> prepare;
  // Whether TensorFlow runs the graph, too: some have no counterpart there.
  bool has_rival = true;
  // The program that compare.py builds instead of the graph, and its sizes.
  // Empty: TensorFlow reads the graph.
  std::string program;
  std::map<std::string, int> sizes;

  // Seconds of a run as the figure that the table shows.
  double figure(double seconds) const {
    return is_rate ? units / seconds * scale : seconds / units * scale;
  }
};

// An entry without its graph, and a function that makes the graph.
struct ComparePlan {
  CompareEntry entry;
  std::function<Result<BenchGraph>()> make;
};
// compare_training.cpp: gradients of loops; train steps.
void add_gradient_plans(std::vector<ComparePlan>& plans);
void add_training_plans(std::vector<ComparePlan>& plans);
// cluster.cpp: two workers.
void add_cluster_plans(std::vector<ComparePlan>& plans);
// cluster_checkpoint.cpp.
ComparePlan cluster_checkpoint_plan();

// The entries of the workload, or all: those that run here, or over workers.
// Empty if no workload has the name.
Result<std::vector<CompareEntry>> compare_entries(const std::string& only,
                                                  bool over_workers);

}  // namespace tagflow::apps
