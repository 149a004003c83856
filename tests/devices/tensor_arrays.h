// Makes and uses tensor arrays in tests.
#pragma once

#include "tests/devices/one_step.h"

namespace tagflow::devices {

inline const Tensor kFlow = Tensor::scalar(0.0f);

inline Tensor int_row(std::initializer_list<int32_t> values) {
  return Tensor::vector<int32_t>(values);
}

// The ops over one array, in a step of their own.
class Array {
 public:
  Array(int size, DataType dtype, AttrMap attrs = {})
      : dtype_(dtype),
        handle_(step_.array(size, dtype, named(std::move(attrs)))) {}

  Result<Outputs> write(int index, const Tensor& value) const {
    return step_.run("TensorArrayWriteV3",
                     {handle_, Tensor::scalar(index), value, kFlow});
  }
  Result<Outputs> read(int index) const {
    return step_.run("TensorArrayReadV3",
                     {handle_, Tensor::scalar(index), kFlow},
                     {{"dtype", dtype_}});
  }
  Result<Outputs> gather(const Tensor& indices, PartialShape shape = {}) const {
    return step_.run("TensorArrayGatherV3", {handle_, indices, kFlow},
                     {{"dtype", dtype_}, {"element_shape", std::move(shape)}});
  }
  Result<Outputs> scatter(const Tensor& indices, const Tensor& value) const {
    return step_.run("TensorArrayScatterV3", {handle_, indices, value, kFlow});
  }
  Result<Outputs> concat(PartialShape rest = {}) const {
    return step_.run(
        "TensorArrayConcatV3", {handle_, kFlow},
        {{"dtype", dtype_}, {"element_shape_except0", std::move(rest)}});
  }
  Result<Outputs> split(const Tensor& value,
                        std::initializer_list<int64_t> lengths) const {
    return step_.run("TensorArraySplitV3",
                     {handle_, value, Tensor::vector<int64_t>(lengths), kFlow});
  }
  int size() const {
    return step_.value("TensorArraySizeV3", {handle_, kFlow})
        .scalar_value<int32_t>();
  }
  Result<Outputs> close() const {
    return step_.run("TensorArrayCloseV3", {handle_});
  }
  Result<Outputs> make_gradient(const std::string& source = "g") const {
    return step_.run("TensorArrayGradV3", {handle_, kFlow},
                     {{"source", source}});
  }
  // That of elements of shape `prepend` and what follows.
  Result<Outputs> make_wide_gradient(const Tensor& prepend,
                                     const std::string& source = "g") const {
    return step_.run("TensorArrayGradWithShape", {handle_, kFlow, prepend},
                     {{"source", source}});
  }
  // The gradient array, or if `prepend` is given, that of such shapes.
  Array gradient(const std::string& source = "g",
                 const Tensor& prepend = Tensor()) const {
    Array result = *this;
    const auto made = prepend.valid() ? make_wide_gradient(prepend, source)
                                      : make_gradient(source);
    INFO(made.status().to_string());
    REQUIRE(made.ok());
    result.handle_ = (*made)[0];
    return result;
  }
  size_t alive() const { return shared_->resources.alive(); }

  const Tensor& handle() const { return handle_; }

 private:
  static AttrMap named(AttrMap attrs) {
    attrs["tensor_array_name"] = "a";
    return attrs;
  }

  std::shared_ptr<OneStep> shared_ = std::make_shared<OneStep>();
  const OneStep& step_ = *shared_;
  DataType dtype_;
  Tensor handle_;
};

inline const AttrMap kKeep{{"clear_after_read", false}};

inline const AttrMap kDynamic{{"dynamic_size", true}};

inline Tensor ones_of(int count) {
  const std::vector<int32_t> ones(size_t(count), 1);
  return Tensor::of<int32_t>({count}, std::span<const int32_t>(ones));
}

}  // namespace tagflow::devices
