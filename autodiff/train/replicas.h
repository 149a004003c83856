// Replicas: trains one model on several devices, each of which computes the
// gradients of its part of a batch. All are in one graph.
//
//   const Replicas replicas(
//       s, vars, {.devices = {"/job:worker/task:0", "/job:worker/task:1"}},
//       [&](const Replica& r) { return loss_of(r.s, r.vars, part[r.index]); });
//   const auto make = [](const VariableScope& vars) {
//     return optimizers::adam(vars, 0.001);
//   };
//   replicas.minimize(s.named("step"), make);
//   replicas.initialize(s.named("init"));      // after it: slots are variables
//
// Each replica has its own copy of the variables, on its device. What keeps the
// copies equal is one of two things:
//
//   mirrored   All apply the mean of the gradients, which an all-reduce
//              (all_reduce.h) gives to all of them with the same bits. The
//              variables of the first replica are those of `vars`.
//   servers    The variables of `vars` are on servers, which apply the
//              gradients; a replica copies them when its step has been applied.
//
// Variables of further copies are named "replica_1/w", and those of servers and
// of the first mirrored replica "w", so a checkpoint has what a model without
// replicas needs. Thread-compatible, like the graph and its variables. The
// scope keeps the first error; later calls return invalid results.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/train/all_reduce.h"
#include "autodiff/train/optimizer.h"

namespace tagflow::autodiff {

struct ReplicaOptions {
  std::vector<std::string> devices;       // one for each replica
  std::vector<std::string> servers = {};  // empty: the variables are mirrored
  AllReduceOptions all_reduce = {};
  // Of scopes and variables: give another set of replicas in the graph another
  // name.
  std::string name = "replica";
};

// Where a replica is built.
struct Replica {
  size_t index = 0;
  graph::Scope s;  // on the replica's device
  // Its variables. A new set for each copy, which inherits nothing: set
  // initializers and the like in the function.
  graph::VariableScope vars;
};

// Builds one replica, and returns its loss, whose mean over the replicas is
// minimized: with parts of one size and means over them, the mean over the
// whole batch. Each call makes the same variables.
using ReplicaLoss = std::function<Output(const Replica&)>;

// Makes the optimizer of one copy of the variables, with its slots in `vars`.
using OptimizerFn = std::function<Optimizer(const graph::VariableScope& vars)>;

// The operations of a training with backup replicas.
struct BackupSteps {
  // Copies the variables to all replicas, and drops what their queues have. Run
  // it once in each session, before other runs, after the variables have been
  // initialized or restored.
  Output begin;
  // Operation k computes the gradients of replica k, gives them to the servers,
  // waits until an update has used the gradients of that step, and copies the
  // variables. Runs of them, one at a time for each replica, go on beside those
  // of `update`.
  graph::Outputs replicas;
  // Waits for enough gradients, and updates the variables once.
  Output update;
};

class Replicas {
 public:
  // Calls `loss` once for each device. `vars` has no other trainable variables.
  // Fails with InvalidArgument if there is no device or the replicas have
  // different variables, and with servers also if one is partitioned or not
  // trainable.
  //
  // A mirrored variable that is not trainable, such as a moving average, is
  // each replica's own.
  Replicas(const graph::Scope& s, const graph::VariableScope& vars,
           ReplicaOptions options, const ReplicaLoss& loss);

  // As `loss` returned them.
  const graph::Outputs& losses() const { return losses_; }

  // Synchronous: an operation that updates all copies once, by the mean of all
  // gradients. A fetch of a loss in the same run gives its value before the
  // step. The options are as for Optimizer::minimize(); the transform gets the
  // means. Sparse gradients stay sparse.
  Output minimize(const graph::Scope& s, const OptimizerFn& make,
                  const ApplyOptions& options = {}) const;
  // Asynchronous: an operation for each replica, which computes its gradients,
  // lets the servers apply them as they come, and copies the variables then.
  // Its gradients are of the variables after its step before, however many
  // steps of others have been applied since. Runs of them go on beside each
  // other. Fails without servers.
  graph::Outputs minimize_each(const graph::Scope& s, const OptimizerFn& make,
                               const ApplyOptions& options = {}) const;
  // Synchronous with backup replicas: an update waits for `enough` gradients of
  // its step by each variable, and applies the mean of those that have come;
  // later ones are dropped (Chen et al., "Revisiting distributed synchronous
  // SGD", 2016). options.global_step, which numbers the steps, is needed.
  // Sparse gradients are made dense. Fails without servers, and unless
  // 1 <= enough <= replicas.
  BackupSteps minimize_first(const graph::Scope& s, int enough,
                             const OptimizerFn& make,
                             const ApplyOptions& options) const;

  // An operation that assigns their initial values to all variables of `vars`
  // and of the copies, which get those of `vars`.
  Output initialize(const graph::Scope& s) const;

 private:
  struct Copy {
    graph::VariableScope vars;
    std::vector<graph::ScopedVariable> trainable;  // in the order of bases_
  };

  bool has_servers() const { return !options_.servers.empty(); }
  // Whether the replica's variables are those of `vars`.
  bool is_base(size_t replica) const { return replica == 0 && !has_servers(); }
  graph::Scope at(const graph::Scope& s, size_t replica) const {
    return s.with_device(options_.devices[replica]);
  }
  // Where variable i is, and where updates of all of them are.
  graph::Scope at_server(const graph::Scope& s, size_t variable) const;
  graph::Scope at_servers(const graph::Scope& s) const;

  void build(const graph::Scope& s, const ReplicaLoss& loss);
  Status make_bases(const graph::Scope& s);
  Status join_copy(const graph::Scope& s, size_t replica);
  bool check_servers(const graph::Scope& s, const char* what) const;

  std::vector<VariableGradient> gradients(const graph::Scope& in,
                                          size_t replica) const;
  // A gradient by variable i of `vars`.
  Output apply(const graph::Scope& in, const Optimizer& optimizer,
               const std::vector<Gradient>& gradients,
               const graph::Outputs& before, const ApplyOptions& options) const;
  // The values that the servers have after `done`, and the assignments of them
  // to a copy.
  graph::Outputs values(const graph::Scope& in, const Output& done) const;
  graph::Outputs copy_to(const graph::Scope& in, size_t replica,
                         const graph::Outputs& values) const;
  Output minimize_mirrored(const graph::Scope& s, const graph::Scope& in,
                           const OptimizerFn& make,
                           const ApplyOptions& options) const;
  Output minimize_at_servers(const graph::Scope& s, const graph::Scope& in,
                             const OptimizerFn& make,
                             const ApplyOptions& options) const;

  graph::VariableScope vars_;
  ReplicaOptions options_;
  graph::Outputs losses_;
  std::vector<graph::ScopedVariable> bases_;  // the trainable ones of `vars`
  std::vector<Copy> copies_;                  // one for each replica
  // Operations that initialize variables of copies, by the variable's name.
  std::map<std::string, graph::Outputs, std::less<>> initial_;
};

}  // namespace tagflow::autodiff
