#include "devices/files/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

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

// Parses the JSON as a stream: it stores only what is kept, and detects
// repeated names. Returning false ends the parsing.
class HeaderParser : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader header;
  Status status;

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a truth value"); }
  bool number_integer(number_integer_t) override {
    return unexpected("a negative number");
  }
  bool number_float(number_float_t, const string_t&) override {
    return unexpected("a fraction");
  }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != kInShape && place_ != kInOffsets)
      return unexpected("a number");
    if (numbers_.size() == kMaxNumbers)
      return refuse("tensor {:?} has too many dimensions", entry_.name);
    numbers_.push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == kInMetadata) {
      header.metadata.emplace_back(key_, std::move(value));
      return true;
    }
    if (place_ != kInTensor || key_ != "dtype") return unexpected("a string");
    entry_.type = std::move(value);
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == kBefore) {
      place_ = kInRoot;
    } else if (place_ == kInRoot && key_ == kMetadata) {
      place_ = kInMetadata;
    } else if (place_ == kInRoot) {
      place_ = kInTensor;
      entry_ = {};
      entry_.name = key_;
    } else {
      return unexpected("an object");
    }
    if (place_ != kInRoot) fields_.clear();
    return true;
  }

  bool key(string_t& value) override {
    auto& known = place_ == kInRoot ? names_ : fields_;
    if (!known.insert(value).second)
      return refuse("{:?} is there twice", value);
    if (place_ == kInTensor && value != "dtype" && value != "shape" &&
        value != "data_offsets")
      return refuse("tensor {:?} has an unknown field {:?}", entry_.name,
                    value);
    key_ = std::move(value);
    return true;
  }

  bool end_object() override {
    if (place_ == kInTensor) {
      constexpr size_t kFields = 3;
      if (fields_.size() != kFields)
        return refuse("tensor {:?} lacks a field", entry_.name);
      header.entries.push_back(std::move(entry_));
    }
    place_ = kInRoot;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != kInTensor || key_ == "dtype") return unexpected("a list");
    place_ = key_ == "shape" ? kInShape : kInOffsets;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    const bool ok = place_ == kInShape ? take_shape() : take_offsets();
    place_ = kInTensor;
    return ok;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    return refuse("the header is not JSON, at its byte {}", position);
  }

 private:
  enum Place { kBefore, kInRoot, kInMetadata, kInTensor, kInShape, kInOffsets };
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
        place_ < kInTensor ? "" : fmt::format(" of tensor {:?}", entry_.name));
  }

  bool take_shape() {
    std::vector<int64_t> dims;
    for (const uint64_t number : numbers_) {
      if (number > INT64_MAX)
        return refuse("tensor {:?} has a dimension of {}", entry_.name, number);
      dims.push_back(int64_t(number));
    }
    auto shape = Shape::make(dims);
    if (!shape.ok())
      return refuse("tensor {:?}: {}", entry_.name, shape.status().message());
    entry_.shape = std::move(*shape);
    return true;
  }

  bool take_offsets() {
    if (numbers_.size() != 2 || numbers_[0] > numbers_[1])
      return refuse(
          "the data_offsets of tensor {:?} are not a begin and an end",
          entry_.name);
    entry_.begin = numbers_[0];
    entry_.end = numbers_[1];
    return true;
  }

  Place place_ = kBefore;
  std::string key_;
  std::set<std::string, std::less<>> names_, fields_;
  std::vector<uint64_t> numbers_;
  SafetensorsEntry entry_;
};

// Checks that the entries, in the order of their places, have the right sizes
// and leave no gaps.
Status check_safetensors_places(const std::vector<SafetensorsEntry>& entries,
                                uint64_t data_bytes) {
  uint64_t end = 0;
  for (const SafetensorsEntry& entry : entries) {
    const SafetensorsType* type = find_safetensors_type(entry.type);
    if (type == nullptr)
      return header_error("tensor {:?} is of an unknown type {:?}", entry.name,
                          entry.type);
    const auto bits = checked_multiply(entry.shape.num_elements(), type->bits);
    constexpr int kByte = 8;
    if (!bits || *bits % kByte != 0 ||
        uint64_t(*bits / kByte) != entry.end - entry.begin)
      return header_error("tensor {:?} of {}{} cannot have {} bytes",
                          entry.name, entry.type, entry.shape.to_string(),
                          entry.end - entry.begin);
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
  if (!text.starts_with('{'))
    return header_error("the header does not begin with '{{'");
  // The parser would take a zero byte for the end.
  if (text.find('\0') != text.npos)
    return header_error("the header has a byte that is zero");
  HeaderParser parser;
  if (!nlohmann::json::sax_parse(text, &parser)) {
    if (parser.status.ok()) return header_error("the header is not JSON");
    return parser.status;
  }
  std::ranges::sort(parser.header.entries, [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  TAGFLOW_RETURN_IF_ERROR(
      check_safetensors_places(parser.header.entries, data_bytes));
  return std::move(parser.header);
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
  std::string text;
  try {
    text = root.dump();
  } catch (const nlohmann::json::exception&) {
    return header_error("a name is not UTF-8");
  }
  constexpr size_t kAlignment = 8;
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  if (text.size() > kMaxSafetensorsHeader)
    return header_error("the header would have {} bytes; the limit is {}",
                        text.size(), kMaxSafetensorsHeader);
  return text;
}

}  // namespace tagflow::checkpoint
