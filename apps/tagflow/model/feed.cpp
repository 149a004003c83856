#include "apps/tagflow/model/feed.h"

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <set>

#include "apps/shared/io/file.h"
#include "apps/shared/io/json_tensor.h"
#include "apps/shared/io/npy.h"
#include "apps/shared/io/npz.h"
#include "apps/shared/runs/interrupt.h"
#include "apps/tagflow/model/value_type.h"
#include "graph/node_name.h"
#include "graph/storage_type.h"

namespace tagflow::apps {
namespace {

// The tensor of type `dtype` that the text denotes.
Result<Tensor> load_value(const FeedText& text, DataType dtype) {
  if (!text.is_file) return io::parse_json_literal(text.value, dtype);
  // As `--feed x=<(program)`; here a signal still ends the process.
  constexpr io::Pipes kPipes = io::Pipes::kRead;
  if (text.value.ends_with(".npy")) return io::read_npy(text.value, kPipes);
  if (!text.array.empty()) return io::read_npz(text.value, text.array);
  TAGFLOW_ASSIGN(std::string bytes,
                 io::read_file(text.value, io::kMaxFileBytes, kPipes));
  Result<Tensor> value = io::parse_json_file(bytes, dtype);
  if (value.ok()) return value;
  return value.status().with_prefix(fmt::format("\"{}\": ", text.value));
}

// NumPy's default types are seldom those of the graph.
std::string hint_for_type(const FeedText& text, DataType wanted) {
  // NumPy itself has no bfloat16, and the format no strings.
  if (text.value.ends_with(".json") || !text.is_file ||
      wanted == DataType::kBFloat16 || wanted == DataType::kString)
    return "";
  std::string name(dtype_name(storage_type(wanted)));
  if (wanted == DataType::kFloat) name = "float32";
  if (wanted == DataType::kDouble) name = "float64";
  if (wanted == DataType::kHalf) name = "float16";
  return fmt::format("; write the file with .astype(\"{}\")", name);
}

// `what` is the value's part that is fed.
Status check_value(const std::string& name, DataType dtype, const Shape& shape,
                   const ValueType& wanted, std::string_view what,
                   const FeedText& text) {
  if (dtype == wanted.dtype && wanted.shape.accepts(shape)) {
    return {};
  }
  return invalid_argument(
      "[--feed] \"{}\" is {}{}, but {} is {}{}{}{}", name,
      dtype_name(wanted.dtype), wanted.shape.to_string(), what,
      dtype_name(dtype), shape.to_string(),
      text.is_file ? fmt::format(", in \"{}\"", text.value) : "",
      dtype == wanted.dtype ? "" : hint_for_type(text, wanted.dtype));
}

// Checks the last file of rows. All must have the same number, since a shorter
// file would start over before the others.
Status check_counts(const std::vector<LoadedFeeds::ByRows>& all) {
  const LoadedFeeds::ByRows& first = all.front();
  const LoadedFeeds::ByRows& last = all.back();
  if (first.rows.count() == last.rows.count()) return {};
  return invalid_argument(
      "[--feed] \"{}\" has {} rows, but \"{}\" has {}: each step takes rows "
      "of all files",
      first.file, first.rows.count(), last.file, last.rows.count());
}

Failure load_feed(const graph::Graph& graph, const FeedText& text,
                  int64_t batch, std::set<std::string>& seen,
                  LoadedFeeds& loaded) {
  const Result<graph::Endpoint> endpoint = graph.endpoint(text.port);
  if (!endpoint.ok()) {
    return run_time_error(endpoint.status().with_prefix("[--feed] "));
  }
  const std::string port = endpoint->to_string();
  const std::string& name = text.label == text.port ? port : text.label;
  if (!seen.insert(port).second) {
    return usage_error(invalid_argument("[--feed] \"{}\" is fed twice", name));
  }
  if (!text.has_value) {
    loaded.feeds.emplace_back(port, Tensor());
    return {};
  }
  const ValueType wanted = value_type_of(*endpoint);
  Result<Tensor> value = load_value(text, wanted.dtype);
  if (!value.ok()) {
    Status status = std::move(value).status().with_prefix(
        fmt::format("[--feed] {}: ", name));
    return text.is_file ? file_error(std::move(status))
                        : usage_error(std::move(status));
  }
  if (wanted.dtype != value->dtype() &&
      storage_type(wanted.dtype) == value->dtype()) {
    *value = value->with_dtype(wanted.dtype);
  }
  if (text.by_rows) {
    const DataType dtype = value->dtype();
    Result<FeedRows> rows = FeedRows::create(std::move(value).value(), batch);
    const auto failed = [&](Status status) {
      return std::move(status).with_prefix(
          fmt::format("[--feed] {}: \"{}\": ", name, text.value));
    };
    if (!rows.ok()) return run_time_error(failed(std::move(rows).status()));
    // Checks this before the rows are copied, since there may be very many.
    Status fit = check_value(name, dtype, rows->shape(), wanted,
                             batch > 0 ? "a batch of the value"
                                       : "a row of the value, without --batch,",
                             text);
    if (!fit.ok()) return run_time_error(std::move(fit));
    const Interruptible interruptible;
    value = rows->at(1, [&] { return interruptible.signal() != 0; });
    if (!value.ok())
      return interruptible.failure_of(failed(std::move(value).status()));
    if (batch > rows->count())
      spdlog::warn(
          "[--batch] \"{}\" has {} rows, so a batch of {} repeats some",
          text.value, rows->count(), batch);
    loaded.by_rows.push_back(
        {loaded.feeds.size(), text.value, std::move(rows).value()});
    fit = check_counts(loaded.by_rows);
    if (!fit.ok()) return run_time_error(std::move(fit));
  } else {
    Status status = check_value(name, value->dtype(), value->shape(), wanted,
                                "the value", text);
    if (!status.ok()) return run_time_error(std::move(status));
  }
  loaded.feeds.emplace_back(port, std::move(value).value());
  return {};
}

}  // namespace

Result<FeedText> parse_feed(std::string_view text, bool needs_value) {
  const size_t equals = text.find('=');
  FeedText feed;
  feed.has_value = equals != std::string_view::npos;
  if ((needs_value && !feed.has_value) || equals == 0) {
    return invalid_argument("[--feed] \"{}\" is not NAME:PORT{}", text,
                            !needs_value     ? "[=VALUE]"
                            : feed.has_value ? "=VALUE"
                                             : "=VALUE; a run needs a value");
  }
  feed.label = feed.port = text.substr(0, equals);
  TAGFLOW_RETURN_IF_ERROR(
      graph::parse_endpoint(feed.port).status().with_prefix("[--feed] "));
  if (!feed.has_value) return feed;
  feed.value = text.substr(equals + 1);
  feed.by_rows = feed.value.starts_with('@');
  if (feed.by_rows) feed.value.erase(0, 1);
  constexpr std::string_view kArchive = ".npz";
  if (feed.value.ends_with(kArchive)) {
    feed.array = feed.label;
  } else if (const size_t end = feed.value.find(".npz:");
             end != std::string::npos &&
             feed.value.find_first_of("\"[{") != 0) {
    feed.array = feed.value.substr(end + kArchive.size() + 1);
    feed.value.resize(end + kArchive.size());
  }
  feed.is_file = !feed.array.empty() || feed.value.ends_with(".npy") ||
                 feed.value.ends_with(".json");
  if (feed.by_rows && !feed.is_file)
    return invalid_argument(
        "[--feed] the value of \"{}\" begins with @, but \"{}\" is not a .npy, "
        ".npz or .json file",
        feed.port, feed.value.substr(0, 200));
  if (!feed.is_file && !nlohmann::json::accept(feed.value)) {
    return invalid_argument(
        "[--feed] the value of \"{}\" is neither a .npy, .npz or .json file "
        "nor "
        "a JSON literal: {}{}",
        feed.port, feed.value.substr(0, 200), io::hint_for_no_json(feed.value));
  }
  return feed;
}

LoadedFeeds load_feeds(const graph::Graph& graph,
                       const std::vector<FeedText>& texts, int64_t batch) {
  LoadedFeeds result;
  std::set<std::string> seen;
  for (const FeedText& text : texts) {
    result.failure = load_feed(graph, text, batch, seen, result);
    if (result.failure.exit_code != ExitCode::kOk) break;
  }
  return result;
}

}  // namespace tagflow::apps
