#include "devices/files/safetensors_header.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace tagflow::checkpoint {
namespace {

struct SafetensorsType {
  std::string_view name;
  int bits;
  DataType dtype = DataType::kInvalid;
};

// All types of the format; some have elements smaller than a byte.
constexpr SafetensorsType kSafetensorsTypes[] = {
    {"F64", 64, DataType::kDouble},
    {"F32", 32, DataType::kFloat},
    {"F16", 16, DataType::kHalf},
    {"BF16", 16, DataType::kBFloat16},
    {"I64", 64, DataType::kInt64},
    {"I32", 32, DataType::kInt32},
    {"I16", 16, DataType::kInt16},
    {"I8", 8, DataType::kInt8},
    {"U64", 64, DataType::kUInt64},
    {"U32", 32, DataType::kUInt32},
    {"U16", 16, DataType::kUInt16},
    {"U8", 8, DataType::kUInt8},
    {"BOOL", 8, DataType::kBool},
    {"C64", 64, DataType::kComplex64},
    {"F8_E5M2", 8},
    {"F8_E4M3", 8},
    {"F8_E8M0", 8},
    {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8},
    {"F6_E2M3", 6},
    {"F6_E3M2", 6},
    {"F4", 4},
};

constexpr std::string_view kMetadata = "__metadata__";

const SafetensorsType* find_safetensors_type(std::string_view name) {
  const auto* const it =
      std::ranges::find(kSafetensorsTypes, name, &SafetensorsType::name);
  return it == std::end(kSafetensorsTypes) ? nullptr : it;
}

template <class... Args>
Status header_error(fmt::format_string<Args...> format, Args&&... args) {
  return invalid_argument("[safetensors] {}",
                          fmt::format(format, std::forward<Args>(args)...));
}

// An entry as the header has it. It is checked when the header has ended, since
// a later one of the same name replaces it.
struct DescribedTensor {
  std::string type;
  std::vector<uint64_t> dims;
  uint64_t begin = 0, end = 0;
};

// Parses the JSON as a stream: it stores only what is kept. Returning false
// ends the parsing.
class HeaderParser : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::map<std::string, DescribedTensor> tensors;
  std::map<std::string, std::string> metadata;
  Status status;

  bool null() override {
    // As if it were not there.
    if (place_ == kInRoot && key_ == kMetadata) return true;
    return take_other("null");
  }
  bool boolean(bool) override { return take_other("a truth value"); }
  bool number_integer(number_integer_t) override {
    return take_other("a negative number");
  }
  bool number_float(number_float_t, const string_t&) override {
    return take_other("a fraction");
  }
  bool binary(binary_t&) override { return take_other("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != kInShape && place_ != kInOffsets)
      return take_other("a number");
    if (numbers_.size() == kMaxNumbers)
      return refuse("tensor {:?} has too many dimensions", name_);
    numbers_.push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == kInMetadata) {
      metadata.insert_or_assign(key_, std::move(value));
      return true;
    }
    if (place_ != kInTensor || key_ != "dtype") return take_other("a string");
    if (find_safetensors_type(value) == nullptr)
      return refuse("tensor {:?} is of an unknown type {:?}", name_, value);
    tensor_.type = std::move(value);
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == kInUnknown) return enter_unknown();
    if (place_ == kBefore) {
      place_ = kInRoot;
    } else if (place_ == kInRoot && key_ == kMetadata) {
      place_ = kInMetadata;
    } else if (place_ == kInRoot) {
      place_ = kInTensor;
      tensor_ = {};
      name_ = key_;
      fields_.clear();
    } else {
      return unexpected("an object");
    }
    return true;
  }

  bool key(string_t& value) override {
    if (place_ == kInUnknown) return true;
    if (place_ == kInRoot && value == kMetadata &&
        std::exchange(has_metadata_, true))
      return refuse("{:?} is there twice", value);
    if (place_ == kInTensor) {
      const bool is_known =
          value == "dtype" || value == "shape" || value == "data_offsets";
      if (!is_known) place_ = kInUnknown;
      if (is_known && !fields_.insert(value).second)
        return refuse("{:?} of tensor {:?} is there twice", value, name_);
    }
    key_ = std::move(value);
    return true;
  }

  bool end_object() override {
    if (place_ == kInUnknown) return leave_unknown();
    if (place_ == kInTensor) {
      constexpr size_t kFields = 3;
      if (fields_.size() != kFields)
        return refuse("tensor {:?} lacks a field", name_);
      tensors.insert_or_assign(name_, std::move(tensor_));
    }
    place_ = kInRoot;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == kInUnknown) return enter_unknown();
    if (place_ != kInTensor || key_ == "dtype") return unexpected("a list");
    place_ = key_ == "shape" ? kInShape : kInOffsets;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    if (place_ == kInUnknown) return leave_unknown();
    const bool is_shape = place_ == kInShape;
    place_ = kInTensor;
    if (is_shape) {
      tensor_.dims = std::move(numbers_);
      return true;
    }
    if (numbers_.size() != 2)
      return refuse(
          "the data_offsets of tensor {:?} are not a begin and an end", name_);
    tensor_.begin = numbers_[0];
    tensor_.end = numbers_[1];
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    return refuse("the header is not JSON, at its byte {}", position);
  }

 private:
  // kInUnknown: in the value of a field that the format does not have.
  enum Place {
    kBefore,
    kInRoot,
    kInMetadata,
    kInTensor,
    kInShape,
    kInOffsets,
    kInUnknown
  };
  static constexpr size_t kMaxNumbers = kMaxRank;

  template <class... Args>
  bool refuse(fmt::format_string<Args...> format, Args&&... args) {
    status = header_error(format, std::forward<Args>(args)...);
    return false;
  }
  bool unexpected(std::string_view what) {
    if (place_ == kBefore) return refuse("the header is {}, no object", what);
    return refuse(
        "{} is not expected at {:?}{}", what, key_,
        place_ < kInTensor ? "" : fmt::format(" of tensor {:?}", name_));
  }

  // A value that no field of the format has.
  bool take_other(std::string_view what) {
    if (place_ != kInUnknown) return unexpected(what);
    if (unknown_depth_ == 0) place_ = kInTensor;
    return true;
  }
  bool enter_unknown() {
    // All readers of the format accept 127 levels, with the header's object and
    // that of the tensor.
    constexpr int kDeepest = 127 - 2;
    if (unknown_depth_ == kDeepest)
      return refuse("field {:?} of tensor {:?} is nested too deeply", key_,
                    name_);
    ++unknown_depth_;
    return true;
  }
  bool leave_unknown() {
    if (--unknown_depth_ == 0) place_ = kInTensor;
    return true;
  }

  Place place_ = kBefore;
  std::string key_, name_;  // the name is that of the tensor
  bool has_metadata_ = false;
  int unknown_depth_ = 0;  // the open objects and lists of the unknown field
  std::set<std::string, std::less<>> fields_;
  std::vector<uint64_t> numbers_;
  DescribedTensor tensor_;
};

// Checks what is known without the other tensors.
Result<SafetensorsEntry> make_entry(const std::string& name,
                                    const DescribedTensor& tensor) {
  if (tensor.begin > tensor.end)
    return header_error(
        "the data_offsets of tensor {:?} are not a begin and an end", name);
  const int bits = find_safetensors_type(tensor.type)->bits;
  // Multiplied in this order: only what follows a zero may overflow.
  uint64_t count = 1, total = 0;
  std::vector<int64_t> dims;
  for (const uint64_t dim : tensor.dims) {
    if (dim > INT64_MAX)
      return header_error("tensor {:?} has a dimension of {}", name, dim);
    if (__builtin_mul_overflow(count, dim, &count))
      return header_error("tensor {:?}: the number of its elements overflows",
                          name);
    dims.push_back(int64_t(dim));
  }
  TAGFLOW_ASSIGN(Shape shape, Shape::make(dims));
  constexpr uint64_t kByte = 8;
  if (__builtin_mul_overflow(count, uint64_t(bits), &total) ||
      total % kByte != 0 || total / kByte != tensor.end - tensor.begin)
    return header_error("tensor {:?} of {}{} cannot have {} bytes", name,
                        tensor.type, shape.to_string(),
                        tensor.end - tensor.begin);
  return SafetensorsEntry{name, tensor.type, std::move(shape), tensor.begin,
                          tensor.end};
}

// Checks that the entries, in the order of their places, leave no gaps.
Status check_safetensors_places(const std::vector<SafetensorsEntry>& entries,
                                uint64_t data_bytes) {
  uint64_t end = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != end)
      return header_error(
          "tensor {:?} begins at byte {} of the data, but those before end at "
          "{}",
          entry.name, entry.begin, end);
    end = entry.end;
  }
  if (end == data_bytes) return {};
  return header_error("the tensors have {} bytes, but the file has {}", end,
                      data_bytes);
}

}  // namespace

DataType SafetensorsEntry::dtype() const {
  const SafetensorsType* found = find_safetensors_type(type);
  return found == nullptr ? DataType::kInvalid : found->dtype;
}

std::string_view safetensors_type(DataType dtype) {
  if (dtype == DataType::kInvalid) return {};
  const auto* const it =
      std::ranges::find(kSafetensorsTypes, dtype, &SafetensorsType::dtype);
  return it == std::end(kSafetensorsTypes) ? std::string_view() : it->name;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view text,
                                                   uint64_t data_bytes) {
  // The parser would also accept a byte order mark.
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || text[first] != '{')
    return header_error("the header does not begin with '{{'");
  // The parser would take a zero byte for the end.
  if (text.find('\0') != text.npos)
    return header_error("the header has a byte that is zero");
  HeaderParser parser;
  if (!nlohmann::json::sax_parse(text, &parser)) {
    if (parser.status.ok()) return header_error("the header is not JSON");
    return parser.status;
  }
  SafetensorsHeader header;
  for (const auto& [name, tensor] : parser.tensors) {
    TAGFLOW_ASSIGN(SafetensorsEntry entry, make_entry(name, tensor));
    header.entries.push_back(std::move(entry));
  }
  std::ranges::stable_sort(header.entries, [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  TAGFLOW_RETURN_IF_ERROR(check_safetensors_places(header.entries, data_bytes));
  header.metadata.assign(parser.metadata.begin(), parser.metadata.end());
  return header;
}

Result<std::string> format_safetensors_header(const SafetensorsHeader& header) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  for (const auto& [key, text] : header.metadata) root[kMetadata][key] = text;
  for (const SafetensorsEntry& entry : header.entries) {
    auto& json = root[entry.name];
    json["dtype"] = entry.type;
    json["shape"] = nlohmann::ordered_json::array();
    for (const int64_t dim : entry.shape.dims()) json["shape"].push_back(dim);
    json["data_offsets"] = {entry.begin, entry.end};
  }
  const auto is_text = [](const std::string& name) {
    try {
      return !nlohmann::json(name).dump().empty();
    } catch (const nlohmann::json::exception&) {
      return false;
    }
  };
  for (const SafetensorsEntry& entry : header.entries)
    if (!is_text(entry.name))
      return header_error("the name of tensor {:?} is not UTF-8", entry.name);
  std::string text;
  try {
    text = root.dump();
  } catch (const nlohmann::json::exception&) {
    return header_error("the metadata are not UTF-8");
  }
  constexpr size_t kAlignment = 8;
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  if (text.size() > kMaxSafetensorsHeader)
    return header_error("the header would have {} bytes; the limit is {}",
                        text.size(), kMaxSafetensorsHeader);
  return text;
}

}  // namespace tagflow::checkpoint
