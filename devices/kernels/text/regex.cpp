// RegexReplace, RegexFullMatch, and both with a pattern that is an attribute.
#include <re2/re2.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <string_view>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/text/pieces.h"
#include "devices/string_writer.h"
#include "graph/utf8.h"

namespace tagflow::devices {

namespace {

using Pattern = std::shared_ptr<const RE2>;

Result<Pattern> compile_pattern(const std::string& op,
                                const std::string& text) {
  RE2::Options options;
  options.set_log_errors(false);  // they are in the node's error
  auto pattern = std::make_shared<const RE2>(text, options);
  if (!pattern->ok())
    return invalid_argument("[{}] the pattern \"{}\" is invalid: {}", op,
                            shown(text), shown(pattern->error()));
  return Pattern(std::move(pattern));
}

// The pattern of a node: an attribute, or an input of every execution, which
// rarely changes.
class NodePattern {
 public:
  Status build(const KernelInfo& info) {
    is_static_ = info.num_inputs() == 1;
    if (!is_static_) return {};
    TAGFLOW_ASSIGN(last_,
                   compile_pattern(info.node().op(),
                                   attr_of<std::string>(info, "pattern")));
    return {};
  }

  Result<Pattern> of(const KernelContext& context) const {
    if (is_static_) return last_;
    const Tensor& input = context.input(1);
    if (!input.is_scalar())
      return context.fail("pattern must be a scalar, got {}", input.describe());
    const auto& text = input.scalar_value<std::string>();
    {
      const std::lock_guard lock(mutex_);
      if (last_ != nullptr && last_->pattern() == text) return last_;
    }
    TAGFLOW_ASSIGN(Pattern pattern, compile_pattern(context.node().op(), text));
    const std::lock_guard lock(mutex_);
    last_ = pattern;
    return pattern;
  }

 private:
  bool is_static_ = false;
  mutable std::mutex mutex_;
  mutable Pattern last_;  // constant if static; else guarded by the mutex
};

// The bytes that a rewrite becomes.
size_t rewritten_bytes(const std::string& rewrite,
                       std::span<const re2::StringPiece> groups) {
  size_t bytes = rewrite.size();
  for (size_t i = 0; i + 1 < rewrite.size(); ++i) {
    if (rewrite[i] != '\\') continue;
    const auto group = size_t(rewrite[++i] - '0');
    if (group < groups.size()) bytes += groups[group].size();
  }
  return bytes;
}

// Writes the text with replacements to an empty string. As RE2::GlobalReplace,
// or RE2::Replace if not `all`; these call nothing of ours between matches, and
// do not count what they write. An empty match right behind another match is
// none.
void replace(const KernelContext& context, const RE2& pattern,
             const std::string& rewrite, bool all, const std::string& text,
             const StringWriter& writer, std::string& to) {
  constexpr int kMostGroups = 10;  // \0 to \9
  re2::StringPiece groups[kMostGroups];
  const int used = 1 + RE2::MaxSubmatch(rewrite);
  if (used > 1 + pattern.NumberOfCapturingGroups())
    return writer.assign(to, text);
  const std::string_view whole = text;
  size_t from = 0;  // what comes before was written
  size_t last_end = std::string::npos;
  while (from <= whole.size()) {
    context.check_cancelled();
    if (!pattern.Match(text, from, text.size(), RE2::UNANCHORED, groups, used))
      break;
    const auto begin = size_t(groups[0].data() - text.data());
    writer.append(to, whole.substr(from, begin - from));
    if (groups[0].empty() && begin == last_end) {
      // A byte that begins no character is passed over alone.
      const size_t bytes = std::max<size_t>(
          character_length(whole.substr(begin), Surrogates::kAllowed), 1);
      writer.append(to, whole.substr(begin, bytes));
      from = begin + bytes;
    } else {
      writer.extend(to, rewritten_bytes(rewrite, {groups, size_t(used)}));
      if (!pattern.Rewrite(&to, rewrite, groups, used) && !all)
        return writer.assign(to, text);
      from = last_end = begin + groups[0].size();
      if (!all) break;
    }
  }
  if (from < whole.size()) writer.append(to, whole.substr(from));
}

// Approximate nanoseconds per byte.
constexpr double kByteCost = 10;

template <class Body>
void for_each_string(const KernelContext& context, const Tensor& strings,
                     Body body) {
  const int64_t count = strings.num_elements();
  double bytes = 0;
  for (const std::string& text : strings.flat<std::string>())
    bytes += double(text.size());
  const double cost =
      200 + kByteCost * bytes / double(std::max<int64_t>(count, 1));
  context.parallel_for(count, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      context.check_cancelled();
      body(i);
    }
  });
}

class RegexKernel : public Kernel {
 public:
  double cost(const KernelContext& context) const override {
    double bytes = 0;
    for (const Tensor& input : context.inputs())
      for (const std::string& text : input.flat<std::string>())
        bytes += double(text.size()) + 20;
    return 500 + kByteCost * bytes;
  }

 protected:
  NodePattern pattern_;
};

class ReplaceKernel : public RegexKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    auto kernel = std::make_unique<ReplaceKernel>();
    TAGFLOW_RETURN_IF_ERROR(kernel->pattern_.build(info));
    kernel->is_global_ = attr_of<bool>(info, "replace_global");
    kernel->has_rewrite_ = info.num_inputs() == 1;
    if (kernel->has_rewrite_)
      kernel->rewrite_ = attr_of<std::string>(info, "rewrite");
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(const Pattern pattern, pattern_.of(context));
    if (!has_rewrite_ && !context.input(2).is_scalar())
      return context.fail("rewrite must be a scalar, got {}",
                          context.input(2).describe());
    const std::string& rewrite =
        has_rewrite_ ? rewrite_ : context.input(2).scalar_value<std::string>();
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, input.shape()));
    const auto* from = input.data<std::string>();
    auto* to = output->mutable_data<std::string>();
    const StringWriter writer(*output);
    for_each_string(context, input, [&](int64_t i) {
      replace(context, *pattern, rewrite, is_global_, from[i], writer, to[i]);
    });
    return {};
  }

  // A rewrite may be as long as the text, and take the place of each byte.
  double cost(const KernelContext& context) const override {
    constexpr double kWrittenByteCost = 0.1;
    const Tensor* rewrite = has_rewrite_ ? nullptr : &context.input(2);
    const auto bytes = rewrite == nullptr ? double(rewrite_.size())
                       : rewrite->is_scalar()
                           ? double(rewrite->scalar_value<std::string>().size())
                           : 0.0;
    const double read = RegexKernel::cost(context);
    return read + read / kByteCost * bytes * kWrittenByteCost;
  }

 private:
  bool is_global_ = true, has_rewrite_ = false;
  std::string rewrite_;
};

class FullMatchKernel : public RegexKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    auto kernel = std::make_unique<FullMatchKernel>();
    TAGFLOW_RETURN_IF_ERROR(kernel->pattern_.build(info));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(const Pattern pattern, pattern_.of(context));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, input.shape()));
    const auto* from = input.data<std::string>();
    bool* to = output->mutable_data<bool>();
    for_each_string(context, input, [&](int64_t i) {
      to[i] = RE2::FullMatch(from[i], *pattern);
    });
    return {};
  }
};

}  // namespace

void register_text_regex_kernels(KernelRegistry& registry) {
  for (const char* op : {"RegexReplace", "StaticRegexReplace"})
    registry.add<ReplaceKernel>(op);
  for (const char* op : {"RegexFullMatch", "StaticRegexFullMatch"})
    registry.add<FullMatchKernel>(op);
}

}  // namespace tagflow::devices
