#include "apps/shared/live/page_of_session.h"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <optional>
#include <utility>

#include "actors/shared_state.h"
#include "apps/shared/runs/device_memory.h"
#include "devices/state/queue.h"
#include "graph/node_name.h"
#include "net/metrics/pages.h"

namespace tagflow::apps {
namespace {

// The most queues that a picture has.
constexpr size_t kMostQueues = 64;

void add_queues(actors::SharedState& state, live::Picture& picture) {
  state.resources().for_each(
      [&](const devices::ResourceKey& key, devices::StateObject& object) {
        const auto* queue = dynamic_cast<const devices::Queue*>(&object);
        if (queue == nullptr || picture.queues.size() == kMostQueues) return;
        const int64_t capacity = queue->spec().capacity;
        picture.queues.push_back(
            {key.path(), queue->size(),
             capacity == devices::QueueSpec::kUnbounded ? 0 : capacity,
             queue->is_closed(), queue->describe_state()});
      });
}

Status check_wish(const live::Wish& wish, const RunNames& names) {
  if (!wish.stop.frame.empty())
    TAGFLOW_RETURN_IF_ERROR(names.check_frame(wish.stop.frame));
  for (const std::string& tensor : wish.tensors) {
    TAGFLOW_ASSIGN(const auto parsed, graph::parse_endpoint(tensor));
    TAGFLOW_RETURN_IF_ERROR(names.check_tensor(parsed.first, parsed.second));
  }
  return {};
}

}  // namespace

CLI::Option* add_inspect_option(CLI::App& app, InspectOptions& options) {
  return app
      .add_option("--inspect", options.port,
                  "serve a live page of the run on this port, to browsers "
                  "on this machine; 0: one that is free")
      ->type_name("PORT")
      ->check(CLI::Range(0, int(std::numeric_limits<uint16_t>::max())));
}

void add_inspect_options(CLI::App& app, InspectOptions& options) {
  CLI::Option* inspect = add_inspect_option(app, options);
  app.add_option("--stop-at", options.stop_at,
                 "hold the run before that iteration, until a viewer of the "
                 "live page lets it go on")
      ->type_name("[FRAME/]ITERATION")
      ->needs(inspect);
}

Result<std::shared_ptr<live::LivePage>> open_page(const InspectOptions& options,
                                                  const std::string& title) {
  std::shared_ptr<live::LivePage> page;
  if (options.port < 0) return page;
  std::optional<actors::StopPoint> stop;
  if (!options.stop_at.empty()) {
    auto parsed = live::parse_stop(options.stop_at);
    if (!parsed.ok())
      return std::move(parsed).status().with_prefix("[--stop-at] ");
    stop = std::move(*parsed);
  }
  auto started = live::LivePage::start(uint16_t(options.port), title);
  if (!started.ok())
    return std::move(started).status().with_prefix("[--inspect] ");
  page = std::move(*started);
  spdlog::info("inspect: {}", page->address());
  if (stop) {
    page->inspector().stop_at(*std::move(stop));
    spdlog::info(
        "inspect: the run is held where it comes to {}, until the page lets it "
        "go on",
        options.stop_at);
  }
  return page;
}

Status check_stop(live::LivePage* page, const RunNames& names) {
  if (page == nullptr) return {};
  const auto stop = page->inspector().stop();
  if (!stop || stop->frame.empty()) return {};
  return names.check_frame(stop->frame).with_prefix("[--stop-at] ");
}

PageOfSession::PageOfSession(live::LivePage* page,
                             const actors::Session& session,
                             const RunNames* names)
    : page_(page) {
  if (page_ == nullptr) return;
  if (names != nullptr)
    page_->set_check([names](const live::Wish& wish) {
      return check_wish(wish, *names).with_prefix("[inspect] ");
    });
  page_->set_fill([&session](live::Picture& picture) {
    picture.memory = memory_of(session);
    if (const auto state = session.shared_state()) add_queues(*state, picture);
    picture.process_bytes = net::resident_bytes();
  });
}

PageOfSession::~PageOfSession() {
  if (page_ == nullptr) return;
  page_->set_fill(nullptr);
  page_->set_check(nullptr);
}

}  // namespace tagflow::apps
