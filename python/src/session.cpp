// Sessions: they hold a graph and its state, and prepare what is called.
#include "actors/session/session.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actors/checkpoint/saved_model.h"
#include "devices/device.h"
#include "graph/placement/device_info.h"
#include "python/src/bindings.h"
#include "python/src/callable_object.h"
#include "python/src/error.h"
#include "python/src/gil.h"
#include "python/src/graph_object.h"
#include "python/src/session_object.h"
#include "python/src/target.h"

namespace tagflow::python {
namespace {

std::chrono::nanoseconds to_time(std::optional<double> seconds) {
  if (!seconds) return std::chrono::nanoseconds(0);
  if (!(*seconds > 0))
    raise(
        invalid_argument("[session] timeout must be more than 0 seconds, but "
                         "is {}; None is for none",
                         *seconds));
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::min(*seconds, 1e9)));
}

std::unique_ptr<SessionObject> create(const std::string& devices, int workers,
                                      std::optional<uint64_t> seed,
                                      std::optional<double> timeout, int window,
                                      bool soft_placement, const Target& target,
                                      SessionObject* shares_state_of) {
  actors::SessionOptions options;
  options.devices = devices;
  options.workers = workers;
  options.seed = seed;
  options.timeout = to_time(timeout);
  options.window = window;
  options.soft_placement = soft_placement;
  if (shares_state_of != nullptr)
    options.state = shares_state_of->session().shared_state();
  auto object = std::make_unique<SessionObject>();
  object->set(unlocked([&]() -> Result<std::unique_ptr<actors::Session>> {
    TAGFLOW_ASSIGN(options.backend, connect(target));
    return actors::Session::create(std::move(options));
  }));
  return object;
}

void extend(SessionObject& self, const GraphObject& graph) {
  const auto session = self.shared();
  unlocked([&] {
    const std::lock_guard lock(self.extension);
    return session->extend(graph.graph);
  });
}

nb::object interned(const std::string& text) {
  PyObject* object =
      PyUnicode_FromStringAndSize(text.data(), Py_ssize_t(text.size()));
  if (object == nullptr) throw nb::python_error();
  PyUnicode_InternInPlace(&object);
  return nb::steal<nb::object>(object);
}

ResultForm form_of(const std::string& name) {
  if (name == "single") return ResultForm::kSingle;
  if (name == "list") return ResultForm::kList;
  if (name == "dict") return ResultForm::kDict;
  return ResultForm::kTuple;
}

nb::object make_callable(SessionObject& self,
                         const std::vector<std::string>& feeds,
                         const std::vector<std::string>& fetches,
                         const std::vector<std::string>& targets,
                         const std::vector<std::string>& parameters,
                         const std::string& form,
                         const std::vector<std::string>& keys,
                         std::optional<double> timeout) {
  auto parts = std::make_unique<CallableParts>();
  parts->session = self.shared();
  parts->form = form_of(form);
  parts->num_fetches = fetches.size();
  if ((parts->form == ResultForm::kSingle && fetches.size() != 1) ||
      (parts->form == ResultForm::kDict && keys.size() != fetches.size()) ||
      (!parameters.empty() && parameters.size() != feeds.size()))
    throw nb::value_error("make_callable: the numbers of names differ");
  actors::RunOptions options;
  options.timeout = to_time(timeout);
  parts->elsewhere = parts->on_main = options;
  parts->on_main.goes_on = &no_signal;
  const std::vector<DataType> dtypes =
      unlocked([&]() -> Result<std::vector<DataType>> {
        const std::lock_guard lock(self.extension);
        TAGFLOW_ASSIGN(parts->callable, parts->session->make_callable(
                                            feeds, fetches, targets, options));
        std::vector<DataType> found;
        for (const std::string& feed : feeds) {
          TAGFLOW_ASSIGN(const graph::Endpoint at,
                         parts->session->graph().endpoint(feed));
          found.push_back(
              remove_ref(at.node->output_dtypes()[size_t(at.port)]));
        }
        return found;
      });
  for (size_t i = 0; i < feeds.size(); ++i)
    parts->feeds.push_back(
        {feeds[i], interned(parameters.empty() ? feeds[i] : parameters[i]),
         dtypes[i]});
  for (const std::string& key : keys) parts->keys.push_back(interned(key));
  return make_callable_object(std::move(parts));
}

// Whether it is the name of a node without outputs.
bool is_operation(SessionObject& self, const std::string& name) {
  const auto session = self.shared();
  const Released released;
  const std::lock_guard lock(self.extension);
  const graph::Node* const node = session->graph().find(name);
  return node != nullptr && node->num_outputs() == 0;
}

void load_state(SessionObject& self, const GraphObject& graph) {
  const auto session = self.shared();
  unlocked([&] {
    return actors::load_saved_state(*session, graph.state, graph.path);
  });
}

nb::list devices_of(SessionObject& self) {
  nb::list names;
  for (const auto& info : self.session().device_infos())
    names.append(info.name.to_string());
  return names;
}

nb::dict counters_of(SessionObject& self) {
  const actors::SessionCounters counters = self.session().counters();
  nb::dict dict;
  dict["active"] = counters.active;
  dict["waiting"] = counters.waiting;
  dict["queued"] = counters.queued;
  dict["signatures"] = counters.signatures;
  dict["device_bytes"] = counters.device_bytes;
  return dict;
}

void close(SessionObject& self, std::optional<double> deadline) {
  const auto session = self.leave();
  if (session == nullptr) return;
  std::optional<std::chrono::nanoseconds> time;
  if (deadline) time = to_time(deadline);
  unlocked([&] { return session->close(time); });
}

}  // namespace

SessionObject::~SessionObject() {
  if (session_ == nullptr) return;
  const Released released;
  session_.reset();
}

actors::Session& SessionObject::session() const { return *shared(); }

std::shared_ptr<actors::Session> SessionObject::shared() const {
  if (session_ == nullptr)
    raise(error(Code::kFailedPrecondition, "[session] the session is closed"));
  return session_;
}

void bind_session(nb::module_& module) {
  nb::class_<Target>(module, "Target")
      .def(nb::init<>())
      .def_rw("address", &Target::address)
      .def_rw("secret_file", &Target::secret_file)
      .def_rw("tls_ca", &Target::tls_ca)
      .def_rw("tls_cert", &Target::tls_cert)
      .def_rw("tls_key", &Target::tls_key);
  nb::class_<SessionObject>(module, "Session")
      .def_static("create", &create, nb::arg("devices"), nb::arg("workers"),
                  nb::arg("seed").none(), nb::arg("timeout").none(),
                  nb::arg("window"), nb::arg("soft_placement"),
                  nb::arg("target"), nb::arg("shares_state_of").none())
      .def("extend", &extend, nb::arg("graph"))
      .def("make_callable", &make_callable, nb::arg("feeds"),
           nb::arg("fetches"), nb::arg("targets"), nb::arg("parameters"),
           nb::arg("form"), nb::arg("keys"), nb::arg("timeout").none(),
           nb::sig("def make_callable(self, feeds: list[str], fetches: "
                   "list[str], targets: list[str], parameters: list[str], "
                   "form: str, keys: list[str], timeout: float | None) -> "
                   "Callable"))
      .def("is_operation", &is_operation, nb::arg("name"))
      .def("load_state", &load_state, nb::arg("graph"))
      .def(
          "reset",
          [](SessionObject& self, const std::vector<std::string>& containers) {
            const auto session = self.shared();
            unlocked([&] { return session->reset(containers); });
          },
          nb::arg("containers"))
      .def("close", &close, nb::arg("deadline").none() = nb::none())
      .def_prop_ro("is_closed", &SessionObject::is_closed)
      .def("devices", &devices_of, nb::sig("def devices(self) -> list[str]"))
      .def("counters", &counters_of,
           nb::sig("def counters(self) -> dict[str, int]"))
      .def("stalled",
           [](SessionObject& self) { return self.session().stalled(); });
}

}  // namespace tagflow::python
