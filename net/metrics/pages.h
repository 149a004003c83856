// What the processes of a cluster say of themselves on their pages of metrics.
#pragma once

#include <cstdint>
#include <vector>

#include "net/master/figures.h"
#include "net/metrics/metric_text.h"
#include "net/service/figures.h"
#include "net/tensorflow/figures.h"
#include "net/transfer/link_figures.h"
#include "net/worker/figures.h"

namespace tagflow::net {

// Those of this process, in the names that Prometheus has for any process: when
// it began, the processor time, the memory and the descriptors that it has. A
// figure that the system does not give is left out. Thread-safe, as all of
// these are for different texts.
void write_process(MetricText& text);
// The memory that this process has; 0: the system does not say. Thread-safe.
uint64_t resident_bytes();
void write_worker(MetricText& text, const WorkerFigures& figures);
void write_cluster(MetricText& text, const ClusterFigures& figures);
// Of these the members and their links alone.
void write_members(MetricText& text, const ClusterFigures& figures);
void write_service(MetricText& text, const ServiceFigures& figures);
void write_sessions(MetricText& text, const SessionFigures& figures);

// By one text at most.
void write_steps(MetricText& text, const StepCounts::Numbers& steps);
// Several links to one peer are one: their bytes and frames are summed.
void write_links(MetricText& text, const std::vector<LinkFigures>& links);

}  // namespace tagflow::net
