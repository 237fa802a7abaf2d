// Compares masks from stdin, as docs/pictures/draw.py --masks prints them, with sluice_reference: all scores
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

std::vector<std::string> seen(const Mask &mask) {
  sluice::Problem problem;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F32;
  problem.q_heads = problem.kv_heads = 1;
  problem.head_dim_qk = 1;
  problem.head_dim_v = mask.keys;
  problem.mask_alignment = mask.top_left ? SLUICE_TOP_LEFT : SLUICE_BOTTOM_RIGHT;
  if (mask.causal) problem.flags |= SLUICE_CAUSAL;
  if (mask.left >= 0) {
    problem.flags |= SLUICE_HAS_WINDOW_LEFT;
    problem.window_left = mask.left;
    problem.sink_tokens = mask.sinks;
  }
  if (mask.right >= 0) {
    problem.flags |= SLUICE_HAS_WINDOW_RIGHT;
    problem.window_right = mask.right;
  }
  const int64_t rows = mask.rows, keys = mask.keys;
  std::vector<float> q(rows), k(keys), v(keys * keys), o(rows * keys, -1);
  for (int64_t j = 0; j < keys; ++j)
    v[j * keys + j] = 1;
  sluice::Args args;
  args.batch = 1;
  args.q_len = mask.rows;
  args.kv_len = mask.keys;
  args.q = sluice::TensorView::bshd(q.data(), SLUICE_F32, 1, rows, 1, 1);
  args.k = sluice::TensorView::bshd(k.data(), SLUICE_F32, 1, keys, 1, 1);
  args.v = sluice::TensorView::bshd(v.data(), SLUICE_F32, 1, keys, 1, keys);
  args.o = sluice::TensorView::bshd(o.data(), SLUICE_F32, 1, rows, 1, keys);
  sluice::reference(problem, args).value();
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
    for (const std::string &line : seen(mask)) {
      std::string drawn;
      std::cin >> drawn;
      if (drawn == line) continue;
      ++wrong;
      std::cout << mask.name << ": a row is drawn as " << drawn << ", and sluice_reference sees " << line
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
