#include "graph/op_def.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace tagflow::graph {
namespace {

constexpr std::array<std::string_view, 8> kAttrTypes = {
    "type", "int", "float", "bool", "string", "shape", "tensor", "func"};

const std::vector<DataType>& real_types() {
  static const std::vector<DataType> types = {
      DataType::kFloat, DataType::kDouble,   DataType::kInt32,
      DataType::kUInt8, DataType::kInt16,    DataType::kInt8,
      DataType::kInt64, DataType::kBFloat16, DataType::kUInt16,
      DataType::kHalf,  DataType::kUInt32,   DataType::kUInt64};
  return types;
}

// The quantized types count as numbers too, as in TensorFlow.
const std::vector<DataType>& number_types() {
  static const std::vector<DataType> types = [] {
    std::vector<DataType> all = real_types();
    all.insert(all.end(),
               {DataType::kComplex64, DataType::kComplex128, DataType::kQInt8,
                DataType::kQUInt8, DataType::kQInt32});
    return all;
  }();
  return types;
}

// Thrown inside of build() only: the parser's functions return what they have
// read, and none can go on after an error.
struct Malformed {
  std::string why;
};

// Not isalnum(), which depends on the locale.
bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

// Parses the texts of OpDefBuilder from the front.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text), rest_(text) {}

  [[noreturn]] void fail(std::string_view what) const {
    throw Malformed{fmt::format("\"{}\": {}", text_, what)};
  }
  // Consumes `token` if it comes next.
  bool take(std::string_view token) {
    skip_space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail(fmt::format("\"{}\" is missing", token));
  }
  bool done() {
    skip_space();
    return rest_.empty();
  }
  void expect_end() {
    if (!done()) fail(fmt::format("cannot read \"{}\"", rest_));
  }
  // Letters, digits and underscores.
  std::string word() {
    skip_space();
    size_t n = 0;
    while (n < rest_.size() && is_word_char(rest_[n])) ++n;
    if (n == 0) fail(fmt::format("a name is missing before \"{}\"", rest_));
    std::string name(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return name;
  }
  std::string quoted() {
    skip_space();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"'))
      fail("a quoted string is missing");
    const size_t end = rest_.find(rest_[0], 1);
    if (end == rest_.npos) fail("a quote is not closed");
    std::string value(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return value;
  }
  template <class T>
  T number() {
    skip_space();
    T value{};
    const auto [end, code] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (code != std::errc()) fail(fmt::format("\"{}\" is not a number", rest_));
    rest_.remove_prefix(size_t(end - rest_.data()));
    return value;
  }
  DataType dtype() {
    const std::string name = word();
    const Result<DataType> type = dtype_from_name(name);
    if (!type.ok()) fail(fmt::format("unknown type \"{}\"", name));
    return *type;
  }
  char peek() {
    skip_space();
    return rest_.empty() ? '\0' : rest_[0];
  }

 private:
  void skip_space() {
    while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
  }

  std::string_view text_, rest_;
};

// "{float, int32}" or "{'SAME', 'VALID'}" after the brace.
std::string parse_set(Scanner& scanner, AttrDef& attr) {
  const bool strings = scanner.peek() == '\'' || scanner.peek() == '"';
  do {
    if (strings) {
      attr.allowed_strings.push_back(scanner.quoted());
    } else {
      attr.allowed_types.push_back(scanner.dtype());
    }
  } while (scanner.take(","));
  scanner.expect("}");
  return strings ? "string" : "type";
}

std::string parse_element_type(Scanner& scanner, AttrDef& attr) {
  if (scanner.take("{")) return parse_set(scanner, attr);
  std::string type = scanner.word();
  if (type == "numbertype") attr.allowed_types = number_types();
  if (type == "realnumbertype") attr.allowed_types = real_types();
  if (!attr.allowed_types.empty()) return "type";
  if (std::ranges::find(kAttrTypes, type) == kAttrTypes.end())
    scanner.fail(fmt::format("\"{}\" is not an attribute type", type));
  return type;
}

// "[2,-1]"; "{}" for a scalar; "<unknown>" for an unknown rank.
PartialShape parse_shape(Scanner& scanner) {
  if (scanner.take("<unknown>")) return PartialShape();
  if (scanner.take("{")) {
    const bool unknown = scanner.take("unknown_rank: true");
    scanner.expect("}");
    return unknown ? PartialShape() : PartialShape::scalar();
  }
  scanner.expect("[");
  PartialShape shape = PartialShape::scalar();
  while (!scanner.take("]")) {
    shape.add_dim(scanner.take("?") ? PartialShape::kUnknown
                                    : scanner.number<int64_t>());
    scanner.take(",");
  }
  return shape;
}

bool parse_bool(Scanner& scanner) {
  const std::string word = scanner.word();
  if (word != "true" && word != "false") scanner.fail("a bool is wanted");
  return word == "true";
}

template <class F>
auto parse_list(Scanner& scanner, F&& element) {
  std::vector<decltype(element())> list;
  scanner.expect("[");
  while (!scanner.take("]")) {
    list.push_back(element());
    scanner.take(",");
  }
  return AttrValue(std::move(list));
}

AttrValue parse_default(Scanner& s, const std::string& type) {
  auto integer = [&] { return s.number<int64_t>(); };
  auto real = [&] { return s.number<float>(); };
  auto boolean = [&] { return parse_bool(s); };
  auto text = [&] { return s.quoted(); };
  auto dtype = [&] { return s.dtype(); };
  auto shape = [&] { return parse_shape(s); };
  if (type == "int") return integer();
  if (type == "float") return real();
  if (type == "bool") return boolean();
  if (type == "string") return text();
  if (type == "type") return dtype();
  if (type == "shape") return shape();
  if (type == "func") return FunctionRef{s.quoted(), {}};
  if (type == "list(int)") return parse_list(s, integer);
  if (type == "list(float)") return parse_list(s, real);
  if (type == "list(bool)") return parse_list(s, boolean);
  if (type == "list(string)") return parse_list(s, text);
  if (type == "list(type)") return parse_list(s, dtype);
  if (type == "list(shape)") return parse_list(s, shape);
  s.fail(fmt::format("{} cannot have a default", type));
}

AttrDef parse_attr(std::string_view text) {
  Scanner scanner(text);
  AttrDef attr;
  attr.name = scanner.word();
  scanner.expect(":");
  if (scanner.take("list(")) {
    attr.type = "list(" + parse_element_type(scanner, attr) + ")";
    scanner.expect(")");
  } else {
    attr.type = parse_element_type(scanner, attr);
  }
  if (scanner.take(">=")) attr.minimum = scanner.number<int64_t>();
  if (scanner.take("=")) attr.default_value = parse_default(scanner, attr.type);
  scanner.expect_end();
  return attr;
}

ArgDef parse_arg(const OpDef& def, std::string_view text) {
  Scanner scanner(text);
  ArgDef arg;
  arg.name = scanner.word();
  scanner.expect(":");
  arg.is_ref = scanner.take("Ref(");
  std::string type = scanner.word();
  if (scanner.take("*")) {
    arg.number_attr = std::move(type);
    arg.is_ref = arg.is_ref || scanner.take("Ref(");
    type = scanner.word();
    const AttrDef* number = def.find_attr(arg.number_attr);
    if (number == nullptr || number->type != "int")
      scanner.fail("the count is not an attribute of type int");
  }
  if (arg.is_ref) scanner.expect(")");
  scanner.expect_end();
  const AttrDef* attr = def.find_attr(type);
  if (attr != nullptr && attr->type == "type") {
    arg.type_attr = type;
  } else if (attr != nullptr && attr->type == "list(type)") {
    if (!arg.number_attr.empty()) scanner.fail("a count of a list of types");
    arg.type_list_attr = type;
  } else {
    const Result<DataType> dtype = dtype_from_name(type);
    if (!dtype.ok())
      scanner.fail(
          fmt::format("\"{}\" is neither a type nor an attribute", type));
    arg.dtype = *dtype;
  }
  return arg;
}

// One input and one output, both one tensor of the same type.
bool keeps_type_of_only_input(const OpDef& def) {
  if (def.inputs.size() != 1 || def.outputs.size() != 1) return false;
  ArgDef input = def.inputs[0];
  input.name = def.outputs[0].name;
  return input == def.outputs[0] && input.number_attr.empty() &&
         input.type_list_attr.empty();
}

}  // namespace

const AttrDef* OpDef::find_attr(std::string_view wanted) const {
  for (const AttrDef& attr : attrs)
    if (attr.name == wanted) return &attr;
  return nullptr;
}

OpDefBuilder::OpDefBuilder(std::string name) { def_.name = std::move(name); }

OpDefBuilder& OpDefBuilder::input(std::string_view text) {
  inputs_.emplace_back(text);
  return *this;
}

OpDefBuilder& OpDefBuilder::output(std::string_view text) {
  outputs_.emplace_back(text);
  return *this;
}

OpDefBuilder& OpDefBuilder::attr(std::string_view text) {
  attrs_.emplace_back(text);
  return *this;
}

OpDefBuilder& OpDefBuilder::inputs(Texts texts) {
  inputs_.insert(inputs_.end(), texts.begin(), texts.end());
  return *this;
}

OpDefBuilder& OpDefBuilder::outputs(Texts texts) {
  outputs_.insert(outputs_.end(), texts.begin(), texts.end());
  return *this;
}

OpDefBuilder& OpDefBuilder::attrs(Texts texts) {
  attrs_.insert(attrs_.end(), texts.begin(), texts.end());
  return *this;
}

OpDefBuilder& OpDefBuilder::stateful() {
  def_.is_stateful = true;
  return *this;
}

OpDefBuilder& OpDefBuilder::changes_input(int input) {
  def_.changed_input = input;
  return *this;
}

OpDefBuilder& OpDefBuilder::takes_reference(int input) {
  def_.reference_input = input;
  return *this;
}

OpDefBuilder& OpDefBuilder::commutative() {
  def_.is_commutative = true;
  return *this;
}

OpDefBuilder& OpDefBuilder::allows_uninitialized_input() {
  def_.allows_uninitialized_input = true;
  return *this;
}

OpDefBuilder& OpDefBuilder::forwards() {
  def_.forwards = true;
  return work(Work::kFree);
}

OpDefBuilder& OpDefBuilder::fusible() {
  def_.is_fusible = true;
  return *this;
}

OpDefBuilder& OpDefBuilder::may_die() {
  def_.may_die = true;
  return *this;
}

OpDefBuilder& OpDefBuilder::work(Work work) {
  def_.work = work;
  return *this;
}

OpDefBuilder& OpDefBuilder::shape(ShapeFn fn) {
  def_.shape_fn = std::move(fn);
  return *this;
}

void OpDefBuilder::parse() {
  for (const std::string& text : attrs_) {
    AttrDef attr = parse_attr(text);
    if (def_.find_attr(attr.name) != nullptr)
      Scanner(text).fail("the attribute is there already");
    def_.attrs.push_back(std::move(attr));
  }
  for (const std::string& text : inputs_)
    def_.inputs.push_back(parse_arg(def_, text));
  for (const std::string& text : outputs_)
    def_.outputs.push_back(parse_arg(def_, text));
  if (def_.changed_input >= int(def_.inputs.size()))
    Scanner("changes_input").fail("there is no such input");
  if (def_.reference_input >= int(def_.inputs.size()))
    Scanner("takes_reference").fail("there is no such input");
  if (def_.forwards && !keeps_type_of_only_input(def_))
    Scanner("forwards")
        .fail("it must have one input, and an output of its type");
}

OpDef OpDefBuilder::build() {
  try {
    parse();
  } catch (Malformed& malformed) {
    def_.malformed = std::move(malformed.why);
  }
  return std::move(def_);
}

}  // namespace tagflow::graph
