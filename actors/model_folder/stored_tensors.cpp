#include "actors/model_folder/stored_tensors.hpp"

#include "core/check.hpp"

#include <utility>

namespace temper::actors {
namespace {

template <class Tensor, class Float>
std::vector<Tensor> listed(std::span<const TensorSpec> tensors,
                           std::span<Float> flat,
                           std::string_view prefix) {
  std::vector<Tensor> list;
  list.reserve(tensors.size());
  for (const TensorSpec& t : tensors) {
    Tensor& tensor = list.emplace_back();
    tensor.name = std::string(prefix) + t.name;
    tensor.shape = t.shape;
    tensor.values =
        flat.subspan(static_cast<std::size_t>(t.offset), static_cast<std::size_t>(t.elements()));
  }
  return list;
}

void check_size(std::size_t floats, std::int64_t expected) {
  TEMPER_CHECK(static_cast<std::int64_t>(floats) == expected,
               "the array has another size than the layout");
}

}  // namespace

std::vector<TensorToWrite> tensors_to_write(const Layout& layout,
                                            std::span<const float> flat,
                                            std::string_view prefix) {
  check_size(flat.size(), layout.size());
  return listed<TensorToWrite>(layout.stored(), flat, prefix);
}

std::vector<TensorToRead> tensors_to_read(const Layout& layout,
                                          std::span<float> flat,
                                          std::string_view prefix) {
  check_size(flat.size(), layout.size());
  auto list = listed<TensorToRead>(layout.stored(), flat, prefix);
  if (layout.model().tie_embeddings) {
    TensorToRead head = list.front();
    head.tied_to = std::exchange(head.name, std::string(prefix) + std::string(kHeadTensor));
    list.push_back(std::move(head));
  }
  return list;
}

std::vector<TensorToWrite> tensors_to_write(const AdapterLayout& layout,
                                            std::span<const float> flat,
                                            std::string_view prefix) {
  check_size(flat.size(), layout.size());
  return listed<TensorToWrite>(layout.tensors(), flat, prefix);
}

std::vector<TensorToRead> tensors_to_read(const AdapterLayout& layout,
                                          std::span<float> flat,
                                          std::string_view prefix) {
  check_size(flat.size(), layout.size());
  return listed<TensorToRead>(layout.tensors(), flat, prefix);
}

std::vector<TensorToRead> tensors_to_check(const Layout& layout) {
  std::vector<TensorToRead> list;
  for (const TensorSpec& t : layout.stored())
    list.push_back({t.name, t.shape, {}});
  if (layout.model().tie_embeddings)
    list.push_back({std::string(kHeadTensor), list.front().shape, {}, list.front().name});
  return list;
}

Result<std::string> read_image(const ModelFolder& folder, const Layout& layout) {
  std::vector<float> flat(static_cast<std::size_t>(layout.size()));
  TEMPER_TRY_STATUS(folder.read(tensors_to_read(layout, flat)));
  return write_safetensors(tensors_to_write(layout, flat), {});
}

}  // namespace temper::actors
