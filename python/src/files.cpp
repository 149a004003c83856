// Variables of sessions, and files of them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/checkpoint/graph_variables.h"
#include "actors/checkpoint/restore.h"
#include "actors/checkpoint/saver.h"
#include "actors/checkpoint/snapshot.h"
#include "devices/files/safetensors.h"
#include "devices/files/tensor_file.h"
#include "python/src/bindings.h"
#include "python/src/convert.h"
#include "python/src/error.h"
#include "python/src/graph_object.h"
#include "python/src/session_object.h"

namespace tagflow::python {
namespace {

nb::object array_of(Tensor tensor) {
  PyObject* const object = to_python(std::move(tensor));
  if (object == nullptr) throw nb::python_error();
  return nb::steal<nb::object>(object);
}

// All variables that have a value, at one moment between runs.
nb::dict variables(const SessionObject& self) {
  const auto session = self.shared();
  actors::Snapshot snapshot = unlocked([&]() -> Result<actors::Snapshot> {
    TAGFLOW_ASSIGN(const auto snapshots, actors::Snapshots::create(*session));
    return snapshots->take();
  });
  nb::dict values;
  for (auto& [name, tensor] : snapshot.variables)
    values[name.c_str()] = array_of(std::move(tensor));
  return values;
}

std::vector<std::string> variable_names(const SessionObject& self) {
  const auto session = self.shared();
  return unlocked([&]() -> Result<std::vector<std::string>> {
    TAGFLOW_ASSIGN(const auto snapshots, actors::Snapshots::create(*session));
    return snapshots->names();
  });
}

// Assigns these variables, and leaves the others alone.
void assign(const SessionObject& self, const nb::dict& values) {
  const auto session = self.shared();
  actors::Snapshot snapshot;
  const auto declared =
      unlocked([&] { return actors::find_variables(session->graph()); });
  for (const auto& [key, value] : values) {
    const auto name = nb::cast<std::string>(key);
    DataType wanted = DataType::kInvalid;
    for (const auto& variable : declared)
      if (variable.name == name) wanted = variable.dtype;
    Tensor tensor;
    if (!to_tensor(value.ptr(), wanted, name, tensor)) throw nb::python_error();
    snapshot.variables.emplace(name, std::move(tensor));
  }
  unlocked([&]() -> Status {
    TAGFLOW_ASSIGN(const auto snapshots, actors::Snapshots::create(*session));
    return snapshots->restore(snapshot);
  });
}

std::string save(const SessionObject& self, const GraphObject* model,
                 const std::string& folder, const std::string& name,
                 int64_t step, int keep) {
  const auto session = self.shared();
  actors::SaverOptions options;
  options.folder = folder;
  options.name = name;
  options.keep = keep;
  if (model != nullptr) options.model = model->state;
  unlocked([&]() -> Status {
    TAGFLOW_ASSIGN(const auto saver,
                   actors::Saver::create(*session, std::move(options)));
    TAGFLOW_RETURN_IF_ERROR(saver->save(step));
    return saver->close();
  });
  return take(checkpoint::find_newest_checkpoint(folder)).prefix;
}

nb::tuple restore(const SessionObject& self, const GraphObject* model,
                  const std::string& path) {
  const auto session = self.shared();
  const actors::Restored restored = unlocked([&] {
    return actors::restore_checkpoint(
        *session, path, model == nullptr ? graph::SavedState() : model->state);
  });
  return nb::make_tuple(restored.path, restored.step, restored.unused);
}

nb::dict read_tensors(const std::string& path) {
  auto tensors =
      unlocked([&]() -> Result<std::vector<std::pair<std::string, Tensor>>> {
        TAGFLOW_ASSIGN(const auto file, checkpoint::open_tensor_file(path));
        std::vector<std::pair<std::string, Tensor>> read;
        for (const checkpoint::TensorInfo& info : file->tensors()) {
          TAGFLOW_ASSIGN(Tensor tensor, file->read(info.name));
          read.emplace_back(info.name, std::move(tensor));
        }
        return read;
      });
  nb::dict values;
  for (auto& [name, tensor] : tensors)
    values[name.c_str()] = array_of(std::move(tensor));
  return values;
}

void write_safetensors(const std::string& path, const nb::dict& values) {
  std::vector<checkpoint::SafetensorsItem> items;
  for (const auto& [key, value] : values) {
    checkpoint::SafetensorsItem item;
    item.name = nb::cast<std::string>(key);
    Tensor tensor;
    if (!to_tensor(value.ptr(), DataType::kInvalid, item.name, tensor))
      throw nb::python_error();
    item.dtype = tensor.dtype();
    item.shape = tensor.shape();
    item.load = [tensor] { return Result<Tensor>(tensor); };
    items.push_back(std::move(item));
  }
  unlocked([&] {
    return checkpoint::write_safetensors(path, std::move(items), {});
  });
}

}  // namespace

void bind_files(nb::module_& module) {
  module.def("variables", &variables, nb::arg("session"));
  module.def("variable_names", &variable_names, nb::arg("session"));
  module.def("assign", &assign, nb::arg("session"), nb::arg("values"));
  module.def("save", &save, nb::arg("session"), nb::arg("model").none(),
             nb::arg("folder"), nb::arg("name"), nb::arg("step"),
             nb::arg("keep"));
  module.def("restore", &restore, nb::arg("session"), nb::arg("model").none(),
             nb::arg("path"));
  module.def("read_tensors", &read_tensors, nb::arg("path"));
  module.def("write_safetensors", &write_safetensors, nb::arg("path"),
             nb::arg("values"));
}

}  // namespace tagflow::python
