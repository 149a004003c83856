#include "apps/shared/training/folder.h"

#include <algorithm>
#include <system_error>
#include <vector>

#include "apps/shared/draw/chart.h"
#include "apps/shared/io/file.h"
#include "apps/shared/training/subject.h"
#include "devices/files/folder_lock.h"

namespace tagflow::training {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHistory = "history.csv";
constexpr const char* kPicture = "loss.svg";

// The file names of Saver.
bool is_of_training(const std::string& name) {
  return name == kHistory || name == kPicture || name == "checkpoint" ||
         name == subject_file({}) || name.starts_with("model.ckpt-");
}

// A trailing mean over about a fiftieth of all values. It skips the first
// steps, which would flatten the rest of the chart.
apps::draw::Series smoothed(const apps::draw::Series& each) {
  constexpr size_t kParts = 50;
  const size_t window = std::max<size_t>(1, each.y.size() / kParts);
  apps::draw::Series means;
  double sum = 0;
  for (size_t i = 0; i < each.y.size(); ++i) {
    sum += each.y[i];
    if (i >= window) sum -= each.y[i - window];
    if (i + 1 < window) continue;
    means.x.push_back(each.x[i]);
    means.y.push_back(sum / double(window));
  }
  return means;
}

}  // namespace

fs::path history_file(const fs::path& folder) { return folder / kHistory; }
fs::path loss_picture(const fs::path& folder) { return folder / kPicture; }

Status remove_training(const fs::path& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) return {};
  TAGFLOW_ASSIGN(const auto lock,
                 checkpoint::FolderLock::take(folder.string()));
  std::vector<fs::path> files;
  for (auto entry = fs::directory_iterator(folder, code);
       !code && entry != fs::directory_iterator(); entry.increment(code))
    if (is_of_training(entry->path().filename())) files.push_back(*entry);
  // Removes the list first: checkpoints that it does not name are unused.
  std::sort(files.begin(), files.end());
  for (size_t i = 0; i < files.size() && !code; ++i) fs::remove(files[i], code);
  if (!code) return {};
  return error(Code::kPermissionDenied, "[--fresh] cannot clear \"{}\": {}",
               folder.string(), code.message());
}

Status draw_losses(const fs::path& file, const History& history) {
  apps::draw::Series each{.style = apps::draw::LineStyle::kFaint};
  apps::draw::Series test{.name = "test",
                          .style = apps::draw::LineStyle::kDots};
  for (const History::Row& row : history.rows()) {
    apps::draw::Series& series = row.set == History::Set::kTrain ? each : test;
    series.x.push_back(double(row.step));
    series.y.push_back(double(row.values[0]));
  }
  if (each.x.empty()) return {};
  apps::draw::Series mean = smoothed(each);
  mean.name = "train";
  const apps::draw::Chart chart{
      .x_label = "step",
      .y_label = history.metrics()[0],
      .series = {std::move(each), std::move(mean), std::move(test)}};
  return io::write_file(file, apps::draw::draw_chart(chart));
}

}  // namespace tagflow::training
