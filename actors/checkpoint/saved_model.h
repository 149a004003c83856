// SavedModel: a model that TensorFlow saved, with the values of its variables.
//
//   auto model = actors::SavedModel::load("exported").value();
//   auto results = model->run("train", {{"x", images}, {"y", labels}});
//   if (results.ok()) std::puts(results->at("loss").describe().c_str());
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "actors/session/session.h"
#include "graph/file/graphdef.h"

namespace tagflow::actors {

// Gives the variables, tables and queues of a session what the model that it
// has comes with. `model` is what graph::load_file() read `state` of. In this
// order:
//   1. The variables get the values of the checkpoint: variables/variables in a
//      SavedModel's folder, or, for "x.meta", that with the prefix "x". They do
//      so by the graph's own saver; where it has none, by the objects of the
//      program, and where the model or the checkpoint says nothing of these, by
//      their names.
//   2. The model's init op runs, as the one that fills tables.
// Tensors that stand for assets are fed absolute paths.
//
// Variables that the checkpoint does not have stay as they are, and so do all
// of a MetaGraph without a checkpoint. Errors, which name the file and the
// variable:
//   NotFound         there is no checkpoint of a SavedModel with variables; a
//                    file of it, an asset, or a variable is missing
//   DataLoss         the checkpoint is damaged
//   InvalidArgument  a variable has another type or shape; the objects are not
//                    those of the graph
//   Unimplemented    the checkpoint is of version 1
//   those of Session::run()
// REQUIRES: as for Session::run(); the graph is in the session. Thread-safe.
Status load_saved_state(Session& session, const graph::SavedState& state,
                        const std::filesystem::path& model,
                        const RunOptions& options = {});

// Thread-safe. Ends as its session does.
class SavedModel {
 public:
  using Tensors = std::map<std::string, Tensor>;

  // Reads a SavedModel's folder or a MetaGraph (graph::load_file), and makes a
  // session that has it, with its state loaded. Where there are several
  // devices, the signatures are placed before their variables get values: so
  // each variable is on the device where the signatures need it. Errors as of
  // load_file(), build_graph(), Session::create() and load_saved_state().
  static Result<std::unique_ptr<SavedModel>> load(
      const std::filesystem::path& path, SessionOptions options = {});

  // Runs a signature: from its inputs to its outputs, by their names. NotFound
  // where there is none of that name; InvalidArgument where an input is missing
  // that has no default, or is none of the signature. Else as Session::run().
  Result<Tensors> run(const std::string& signature, const Tensors& inputs,
                      const RunOptions& options = {},
                      RunStats* stats = nullptr);

  // Those whose names begin with "__" are TensorFlow's own.
  const std::map<std::string, graph::Signature>& signatures() const {
    return signatures_;
  }
  const graph::SavedState& state() const { return state_; }
  // Who is to fill the queues of the model: start_queue_runners() starts them.
  const std::vector<graph::QueueRunnerDef>& queue_runners() const {
    return queue_runners_;
  }
  Session& session() { return *session_; }

 private:
  // What runs when a signature is called with these inputs.
  struct Call {
    std::vector<std::string> outputs;  // the signature's names
    Callable callable;
  };

  SavedModel() = default;
  Result<std::shared_ptr<const Call>> call_of(const std::string& signature,
                                              const Tensors& inputs);
  Result<std::shared_ptr<const Call>> make_call(
      const std::string& signature, const std::vector<std::string>& names);

  std::map<std::string, graph::Signature> signatures_;
  graph::SavedState state_;
  std::vector<graph::QueueRunnerDef> queue_runners_;
  std::unique_ptr<Session> session_;
  std::mutex mutex_;  // of what follows
  std::map<std::pair<std::string, std::vector<std::string>>,
           std::shared_ptr<const Call>>
      calls_;
};

}  // namespace tagflow::actors
