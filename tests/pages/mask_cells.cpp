// Compares masks from stdin, as docs/pictures/draw.py --masks prints them, with the reference: all scores
// are equal and row j of V is 1 only in element j, so that O is nonzero where a key is visible.
#include <sluice/sluice.hpp>

#include <iostream>
#include <string>
#include <vector>

namespace {

struct Mask {
  int rows, keys, causal, top_left, left, right, sinks;
  std::string name;
};

std::vector<std::string> visible(const Mask &mask) {
  sluice::Sized<sluice_mask> seen;
  seen.alignment = mask.top_left ? SLUICE_TOP_LEFT : SLUICE_BOTTOM_RIGHT;
  if (mask.causal) seen.flags |= SLUICE_MASK_CAUSAL;
  if (mask.left >= 0) {
    seen.flags |= SLUICE_MASK_WINDOW_LEFT;
    seen.window_left = mask.left;
    seen.sink_tokens = mask.sinks;
  }
  if (mask.right >= 0) {
    seen.flags |= SLUICE_MASK_WINDOW_RIGHT;
    seen.window_right = mask.right;
  }
  sluice_kv_format format = sluice_kv_tensors(SLUICE_F32, 1, 1);
  format.head_dim_v = mask.keys;
  sluice_attention attention = sluice_make_attention(SLUICE_F32, 1, &format);
  attention.mask = &seen;
  const int64_t rows = mask.rows, keys = mask.keys;
  std::vector<float> q(rows), k(keys), v(keys * keys), o(rows * keys, -1);
  for (int64_t j = 0; j < keys; ++j)
    v[j * keys + j] = 1;
  const sluice_kv kv =
      sluice_make_kv(&format, sluice_packed(k.data(), 1, 1), sluice_packed(v.data(), 1, keys));
  const sluice_keys all = sluice_keys_of_equal(&kv, mask.keys);
  sluice::reference(attention, sluice_make_call(1, mask.rows, sluice_packed(q.data(), 1, 1),
                                                sluice_packed(o.data(), 1, keys), &all))
      .value();
  std::vector<std::string> lines(rows, std::string(keys, '0'));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < keys; ++j)
      if (o[i * keys + j] > 0) lines[i][j] = '1';
  return lines;
}

} // namespace

int main() try {
  int masks = 0, wrong = 0;
  for (Mask mask; std::cin >> mask.rows >> mask.keys >> mask.causal >> mask.top_left >> mask.left >>
                  mask.right >> mask.sinks;
       ++masks) {
    std::getline(std::cin >> std::ws, mask.name);
    for (const std::string &line : visible(mask)) {
      std::string drawn;
      std::cin >> drawn;
      if (drawn == line) continue;
      ++wrong;
      std::cout << mask.name << ": a row is drawn as " << drawn << ", and the reference sees " << line
                << "\n";
    }
  }
  if (!std::cin.eof() || masks < 5) {
    std::cout << masks << " masks, and then something else: the check would prove little\n";
    return 1;
  }
  return wrong ? 1 : 0;
} catch (const std::exception &failed) {
  std::cout << failed.what() << "\n";
  return 1;
}
