#include "apps/shared/runs/run_figures.h"

#include <utility>

#include "net/metrics/pages.h"

namespace tagflow::apps {
namespace {

double in_seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

void RunFigures::on_written(const actors::SaverOptions::Written& written) {
  const std::lock_guard lock(mutex_);
  ++(written.status.ok() ? saves_ : failed_saves_);
  saving_ += written.time;
}

void RunFigures::on_restored(std::chrono::nanoseconds time) {
  const std::lock_guard lock(mutex_);
  ++restores_;
  restoring_ += time;
}

void RunFigures::on_restart() {
  const std::lock_guard lock(mutex_);
  ++restarts_;
  if (!std::exchange(is_restarting_, true)) lost_at_ = Clock::now();
}

void RunFigures::on_step_after_restart() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(is_restarting_, false))
    restarting_ += Clock::now() - lost_at_;
}

void RunFigures::watch(std::weak_ptr<net::Cluster> cluster) {
  const std::lock_guard lock(mutex_);
  cluster_ = std::move(cluster);
}

void RunFigures::write(net::MetricText& text) const {
  constexpr auto kCounter = net::MetricText::Type::kCounter;
  net::write_steps(text, steps.numbers());
  std::weak_ptr<net::Cluster> watched;
  {
    const std::lock_guard lock(mutex_);
    text.one("tagflow_saves_total", kCounter, "Checkpoints that were written.",
             saves_);
    text.one("tagflow_saves_failed_total", kCounter,
             "Checkpoints that could not be written.", failed_saves_);
    text.one("tagflow_saves_seconds_total", kCounter,
             "Time in which checkpoints were written, beside steps.",
             in_seconds(saving_));
    text.one("tagflow_restores_total", kCounter,
             "Checkpoints that were restored.", restores_);
    text.one("tagflow_restores_seconds_total", kCounter,
             "Time in which checkpoints were restored.",
             in_seconds(restoring_));
    text.one("tagflow_restarts_total", kCounter,
             "Restarts after the loss of workers.", restarts_);
    text.one("tagflow_restarts_seconds_total", kCounter,
             "Time from losses to the ends of the next steps.",
             in_seconds(restarting_));
    watched = cluster_;
  }
  // Whoever is last has the cluster end, which may wait: so it is asked, and
  // not kept.
  if (const auto cluster = watched.lock())
    net::write_members(text, cluster->figures());
}

}  // namespace tagflow::apps
