// StringJoin, ReduceJoin, StringLength, Substr, StringUpper, StringLower,
// StringStrip, StringSplit.
#include <unicode/locid.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/text/pieces.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

bool counts_characters(const KernelInfo& info) {
  return attr_of<std::string>(info, "unit") == "UTF8_CHAR";
}

class StringJoinKernel : public BytesKernel {
 public:
  explicit StringJoinKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs, 2),
        separator_(attr_of<std::string>(info, "separator")) {}

  Status compute(KernelContext& context) const override {
    Shape shape;
    for (const Tensor& input : context.inputs())
      if (!input.is_scalar()) shape = input.shape();
    for (const Tensor& input : context.inputs())
      if (!input.is_scalar() && !(input.shape() == shape))
        return context.fail("inputs of shapes {} and {} do not join",
                            input.shape().to_string(), shape.to_string());
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    auto* joined = output->mutable_data<std::string>();
    const StringWriter writer(*output);
    const auto part = [](const Tensor& input, int64_t i) -> const auto& {
      return input.data<std::string>()[input.is_scalar() ? 0 : i];
    };
    const size_t gaps = size_t(std::max(context.num_inputs() - 1, 0));
    for (int64_t i = 0; i < output->num_elements(); ++i) {
      size_t bytes = gaps * separator_.size();
      for (const Tensor& input : context.inputs())
        bytes += part(input, i).size();
      writer.reserve(joined[i], bytes);
      for (int n = 0; n < context.num_inputs(); ++n) {
        context.check_cancelled();
        if (n > 0) joined[i] += separator_;
        joined[i] += part(context.input(n), i);
      }
    }
    return {};
  }

 private:
  std::string separator_;
};

// Joins along the axes of input 1; the last of them is the outermost loop.
class ReduceJoinKernel : public BytesKernel {
 public:
  explicit ReduceJoinKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 2),
        keep_dims_(attr_of<bool>(info, "keep_dims")),
        separator_(attr_of<std::string>(info, "separator")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    const int rank = input.rank();
    const Shape whole = input.shape();
    const auto strides = row_major_strides(whole.dims());
    std::vector<bool> joined(size_t(rank), false);
    StridedCopy kept, within;  // loops over the input
    for (int64_t axis : index_elements(context.input(1))) {
      const Result<int> checked = checked_axis(context, axis, rank);
      if (!checked.ok())  // this op's own code, as in TensorFlow
        return Status(Code::kOutOfRange,
                      std::string(checked.status().message()));
      const int at = *checked;
      if (joined[size_t(at)]) return context.fail("axis {} is given twice", at);
      joined[size_t(at)] = true;
      within.add(input.dim(at), strides[size_t(at)], 0);
    }
    std::ranges::reverse(within.loops);
    if (within.loops.empty()) {
      context.set_output(0, input);
      return {};
    }
    Shape shape;
    for (int i = 0; i < rank; ++i) {
      if (!joined[size_t(i)]) {
        shape.add_dim(input.dim(i));
        kept.add(input.dim(i), strides[size_t(i)], 0);
      } else if (keep_dims_) {
        shape.add_dim(1);
      }
    }
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    const int64_t parts =
        output->num_elements() == 0 || input.num_elements() == 0
            ? 0
            : input.num_elements() / output->num_elements();
    auto* to = output->mutable_data<std::string>();
    const auto* from = input.data<std::string>();
    const StringWriter writer(*output);
    for (int64_t i = 0; i < output->num_elements(); ++i) {
      const int64_t start = position(kept, i);
      size_t bytes =
          size_t(std::max<int64_t>(parts - 1, 0)) * separator_.size();
      for (int64_t j = 0; j < parts; ++j)
        bytes += from[start + position(within, j)].size();
      writer.reserve(to[i], bytes);
      for (int64_t j = 0; j < parts; ++j) {
        context.check_cancelled();
        if (j > 0) to[i] += separator_;
        to[i] += from[start + position(within, j)];
      }
    }
    return {};
  }

 private:
  static int64_t position(const StridedCopy& walk, int64_t index) {
    int64_t at = 0;
    for (size_t i = walk.loops.size(); i-- > 0;) {
      at += index % walk.loops[i].count * walk.loops[i].from_stride;
      index /= walk.loops[i].count;
    }
    return at;
  }

  bool keep_dims_;
  std::string separator_;
};

class StringLengthKernel : public BytesKernel {
 public:
  explicit StringLengthKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs),
        characters_(counts_characters(info)) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, input.shape()));
    auto* to = output->mutable_data<int32_t>();
    for (const std::string& text : input.flat<std::string>()) {
      context.check_cancelled();
      const int64_t length =
          int64_t(characters_ ? count_characters(context, text) : text.size());
      // TensorFlow's result is negative.
      if (length > std::numeric_limits<int32_t>::max())
        return context.fail("a string of length {} is too long for int32",
                            length);
      *to++ = int32_t(length);
    }
    return {};
  }

 private:
  bool characters_;
};

// Maps each byte of each string, or the string as a whole.
class StringMapKernel : public BytesKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    const auto encoding = attr_of<std::string>(info, "encoding");
    if (encoding != "" && encoding != "utf-8")
      return invalid_argument(
          "[{}] encoding must be \"\" or \"utf-8\", is "
          "\"{}\"",
          info.node().op(), encoding);
    return std::unique_ptr<Kernel>(
        new StringMapKernel(info, encoding == "utf-8"));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, input.shape()));
    auto* to = output->mutable_data<std::string>();
    for (const std::string& text : input.flat<std::string>()) {
      context.check_cancelled();
      const auto is_beyond_ascii = [](char c) { return c < 0; };
      if (utf8_ && find_byte(context, text, 0, is_beyond_ascii) < text.size())
        TAGFLOW_RETURN_IF_ERROR(map_characters(context, text, *to++));
      else
        *to++ = map(context, text);
    }
    return {};
  }

 private:
  StringMapKernel(const KernelInfo& info, bool utf8)
      : BytesKernel(info, Work::kInputs, 2),
        utf8_(utf8),
        op_(info.node().op() == "StringStrip"   ? Op::kStrip
            : info.node().op() == "StringUpper" ? Op::kUpper
                                                : Op::kLower) {}

  std::string map(const KernelContext& context, std::string_view text) const {
    if (op_ == Op::kStrip) return std::string(stripped(context, text));
    std::string mapped(text.size(), '\0');
    char* to = mapped.data();
    for_pieces(context, text, [&](std::string_view piece) {
      for (char c : piece) {
        if (op_ == Op::kUpper && c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
        if (op_ == Op::kLower && c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
        *to++ = c;
      }
    });
    return mapped;
  }

  // Follows the rules of Unicode, for no particular language; invalid UTF-8
  // becomes U+FFFD.
  Status map_characters(const KernelContext& context, const std::string& text,
                        std::string& result) const {
    if (text.size() > size_t(std::numeric_limits<int32_t>::max()))
      return context.fail("a string of {} bytes is too long", text.size());
    auto characters = icu::UnicodeString::fromUTF8(
        icu::StringPiece(text.data(), int32_t(text.size())));
    if (op_ == Op::kUpper)
      characters.toUpper(icu::Locale::getRoot());
    else
      characters.toLower(icu::Locale::getRoot());
    if (characters.isBogus())  // out of memory
      return error(Code::kResourceExhausted, "[{}] no memory for {} bytes",
                   context.node().op(), text.size());
    characters.toUTF8String(result);
    return {};
  }

  enum class Op : uint8_t { kUpper, kLower, kStrip };
  bool utf8_;
  Op op_;
};

class SubstrKernel : public BytesKernel {
 public:
  explicit SubstrKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 2),
        characters_(counts_characters(info)) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    const Tensor& pos = context.input(1);
    const Tensor& len = context.input(2);
    if (!(pos.shape() == len.shape()))
      return context.fail("pos {} and len {} must have one shape",
                          pos.describe(), len.describe());
    TAGFLOW_ASSIGN(const Shape shape, broadcast_shape(context));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    const auto at_input = broadcast_strides(input, shape);
    const auto at_pos = broadcast_strides(pos, shape);
    auto* to = output->mutable_data<std::string>();
    const StringWriter writer(*output);
    for (int64_t i = 0; i < output->num_elements(); ++i) {
      context.check_cancelled();
      int64_t text_at = 0, pos_at = 0, rest = i;
      for (int d = shape.rank() - 1; d >= 0; --d) {
        text_at += rest % shape.dim(d) * at_input[size_t(d)];
        pos_at += rest % shape.dim(d) * at_pos[size_t(d)];
        rest /= shape.dim(d);
      }
      const auto& text = input.data<std::string>()[text_at];
      const auto part =
          cut(context, text, index_at(pos, pos_at), index_at(len, pos_at));
      if (!part)
        return context.fail("pos {} is outside string {} of {} bytes",
                            index_at(pos, pos_at), text_at, text.size());
      writer.assign(to[i], *part);
    }
    return {};
  }

 private:
  static Result<Shape> broadcast_shape(const KernelContext& context) {
    Shape a = context.input(0).shape(), b = context.input(1).shape();
    while (a.rank() < b.rank()) a.insert_dim(0, 1);
    while (b.rank() < a.rank()) b.insert_dim(0, 1);
    for (int i = 0; i < a.rank(); ++i) {
      if (a.dim(i) != b.dim(i) && a.dim(i) != 1 && b.dim(i) != 1)
        return context.fail("input {} and pos {} do not broadcast",
                            context.input(0).describe(),
                            context.input(1).describe());
      if (a.dim(i) == 1) a.set_dim(i, b.dim(i));
    }
    return Shape::make(a.dims());
  }

  // Strides of the tensor along each dimension of `shape`, 0 if it repeats.
  static Shape::Dims broadcast_strides(const Tensor& tensor,
                                       const Shape& shape) {
    const Shape own = tensor.shape();
    const auto strides = row_major_strides(own.dims());
    Shape::Dims result(size_t(shape.rank()), 0);
    const int skipped = shape.rank() - own.rank();
    for (int i = 0; i < own.rank(); ++i)
      if (own.dim(i) != 1) result[size_t(skipped + i)] = strides[size_t(i)];
    return result;
  }

  // Where a character begins, or the end of the text.
  static size_t start_of(const KernelContext& context, std::string_view text,
                         int64_t character) {
    return find_byte(context, text, 0, [&](char byte) {
      return !continues(byte) && character-- == 0;
    });
  }

  // Nothing if pos is outside. A length that is too long is cut. A negative
  // length means the rest in bytes, but nothing in characters; as in
  // TensorFlow, pos must then not count from the end.
  std::optional<std::string_view> cut(const KernelContext& context,
                                      std::string_view text, int64_t pos,
                                      int64_t len) const {
    const auto size =
        int64_t(characters_ ? count_characters(context, text) : text.size());
    if (pos < -size || pos > size) return std::nullopt;
    if (pos < 0 && len < 0 && characters_) return std::nullopt;
    if (pos < 0) pos += size;
    if (len < 0 && !characters_) len = size;
    const int64_t end = pos + std::clamp<int64_t>(len, 0, size - pos);
    const auto start = [&](int64_t at) {
      return characters_ ? start_of(context, text, at) : size_t(at);
    };
    const size_t begin_at = start(pos), end_at = start(end);
    return text.substr(begin_at, end_at - begin_at);
  }

  bool characters_;
};

// StringSplitV2 splits at a separator, or at white space if it is empty;
// StringSplit splits at each of several characters, or between all if there are
// none.
class StringSplitKernel : public BytesKernel {
 public:
  explicit StringSplitKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 5),
        is_v2_(info.node().op() == "StringSplitV2"),
        skip_empty_(attr_of<bool>(info, "skip_empty")),
        max_split_(attr_of<int64_t>(info, "maxsplit")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    if (input.rank() != 1)
      return context.fail("input must be a vector, is {}", input.describe());
    if (!context.input(1).is_scalar())
      return context.fail("the separator must be a scalar, is {}",
                          context.input(1).describe());
    const auto& separator = context.input(1).scalar_value<std::string>();
    int64_t total = 0, longest = 0;
    for (const std::string& text : input.flat<std::string>()) {
      context.check_cancelled();
      int64_t count = 0;
      split(context, text, separator, [&](std::string_view) { ++count; });
      total += count;
      longest = std::max(longest, count);
    }
    TAGFLOW_ASSIGN(Tensor * indices, context.allocate_output(0, {total, 2}));
    TAGFLOW_ASSIGN(Tensor * values, context.allocate_output(1, {total}));
    auto* index = indices->mutable_data<int64_t>();
    auto* value = values->mutable_data<std::string>();
    const StringWriter writer(*values);
    int64_t row = 0;
    for (const std::string& text : input.flat<std::string>()) {
      int64_t i = 0;
      split(context, text, separator, [&](std::string_view part) {
        *index++ = row;
        *index++ = i++;
        writer.assign(*value++, part);
      });
      ++row;
    }
    context.set_output(2, Tensor::vector<int64_t>({input.dim(0), longest}));
    return {};
  }

 private:
  // Calls add(part) for each part of the text.
  template <class Add>
  void split(const KernelContext& context, std::string_view text,
             const std::string& separator, const Add& add) const {
    if (is_v2_) {
      split_at_text(context, text, separator, add);
    } else {
      split_at_any(context, text, separator, add);
    }
  }

  template <class Add>
  void split_at_text(const KernelContext& context, std::string_view text,
                     const std::string& separator, const Add& add) const {
    int64_t parts = 0;
    const auto add_part = [&](std::string_view part) {
      add(part);
      ++parts;
    };
    if (max_split_ == 0) return add(text);
    if (separator.empty()) {
      const auto next_word = [&](size_t from) {
        return find_byte(context, text, from, std::not_fn(is_space));
      };
      size_t at = next_word(0);
      while (at < text.size()) {
        const size_t end = find_byte(context, text, at, is_space);
        add_part(text.substr(at, end - at));
        at = next_word(end);
        if (!full(parts)) continue;
        // The rest is one part, though it may be empty.
        add(text.substr(at));
        break;
      }
      return;
    }
    size_t at = 0;
    while (!full(parts)) {
      const size_t end = find_text(context, text, separator, at);
      if (end == text.npos) break;
      add_part(text.substr(at, end - at));
      at = end + separator.size();
    }
    add(text.substr(at));
  }
  bool full(int64_t parts) const {
    return max_split_ >= 0 && parts >= max_split_;
  }

  template <class Add>
  void split_at_any(const KernelContext& context, std::string_view text,
                    const std::string& characters, const Add& add) const {
    const auto add_part = [&](std::string_view part) {
      context.check_cancelled();
      if (!part.empty() || !skip_empty_) add(part);
    };
    if (characters.empty()) {
      for (size_t i = 0; i < text.size(); ++i) add_part(text.substr(i, 1));
      return;
    }
    if (text.empty()) return;
    std::array<bool, 256> splits = {};
    for (const char c : characters) splits[uint8_t(c)] = true;
    for (size_t at = 0, end = 0; end < text.size(); at = end + 1) {
      end = find_byte(context, text, at,
                      [&](char c) { return splits[uint8_t(c)]; });
      add_part(text.substr(at, end - at));
    }
  }

  bool is_v2_, skip_empty_;
  int64_t max_split_;
};

}  // namespace

void register_text_string_kernels(KernelRegistry& registry) {
  registry.add<StringJoinKernel>("StringJoin");
  registry.add<ReduceJoinKernel>("ReduceJoin");
  registry.add<StringLengthKernel>("StringLength");
  for (const char* op : {"StringUpper", "StringLower", "StringStrip"})
    registry.add<StringMapKernel>(op);
  registry.add<SubstrKernel>("Substr");
  registry.add<StringSplitKernel>("StringSplit");
  registry.add<StringSplitKernel>("StringSplitV2");
}

}  // namespace tagflow::devices
