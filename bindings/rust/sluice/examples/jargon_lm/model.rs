//! The decoder: everything but attention, on the host, in float. The same operations in the same order as in
//! docs/examples/jargon_lm/model.cpp, so that the logits are the same.

use crate::attention::{Attention, Shape};
use crate::json::Json;
use crate::safetensors::{self, Tensor};
use std::collections::BTreeMap;
use std::path::Path;

pub struct Config {
    pub vocab_size: usize,
    pub hidden_size: usize,
    pub num_layers: usize,
    pub num_heads: usize,
    pub num_kv_heads: usize,
    pub head_dim: usize,
    pub mlp_size: usize,
    pub max_positions: usize,
    pub rope_base: f32,
    pub norm_eps: f32,
}

/// The JSON of a file.
pub fn read_json(path: &Path) -> Result<Json, String> {
    let explain = |what: String| format!("{}: {what}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| explain(error.to_string()))?;
    Json::parse(&text).map_err(explain)
}

impl Config {
    fn load(path: &Path) -> Result<Config, String> {
        let json = read_json(path)?;
        let count = |name| json.get(name)?.count();
        Ok(Config {
            vocab_size: count("vocab_size")?,
            hidden_size: count("hidden_size")?,
            num_layers: count("num_layers")?,
            num_heads: count("num_heads")?,
            num_kv_heads: count("num_kv_heads")?,
            head_dim: count("head_dim")?,
            mlp_size: count("mlp_size")?,
            max_positions: count("max_positions")?,
            rope_base: json.get("rope_base")?.number()? as f32,
            norm_eps: json.get("norm_eps")?.number()? as f32,
        })
    }

    pub fn attention_shape(&self) -> Shape {
        Shape {
            layers: self.num_layers,
            q_heads: self.num_heads,
            kv_heads: self.num_kv_heads,
            head_dim: self.head_dim,
            max_positions: self.max_positions,
        }
    }
}

/// \[out, in\], row-major.
type Matrix = Vec<f32>;

struct Layer {
    attn_norm: Matrix,
    q: Matrix,
    k: Matrix,
    v: Matrix,
    o: Matrix,
    mlp_norm: Matrix,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
}

pub struct Model {
    pub config: Config,
    embed: Matrix,
    norm: Matrix,
    layers: Vec<Layer>,
}

/// y[row, out] = sum over in of x[row, in] * weight[out, in]
fn multiply(x: &[f32], weight: &[f32], size: usize) -> Vec<f32> {
    let dot = |row: &[f32], out: &[f32]| row.iter().zip(out).fold(0.0f32, |sum, (a, b)| sum + a * b);
    x.chunks_exact(size).flat_map(|row| weight.chunks_exact(size).map(move |out| dot(row, out))).collect()
}

fn add(x: &mut [f32], y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += y;
    }
}

impl Model {
    pub fn load(folder: &Path) -> Result<Model, String> {
        let config = Config::load(&folder.join("config.json"))?;
        let mut tensors = safetensors::load(&folder.join("model.safetensors"))?;
        let (hidden, mlp) = (config.hidden_size, config.mlp_size);
        let (q_size, kv_size) = (config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim);
        let embed = take(&mut tensors, "embed".into(), &[config.vocab_size, hidden])?;
        let norm = take(&mut tensors, "norm".into(), &[hidden])?;
        let mut layers = vec![];
        for i in 0..config.num_layers {
            let mut take =
                |name: &str, shape: &[usize]| take(&mut tensors, format!("layers.{i}.{name}"), shape);
            layers.push(Layer {
                attn_norm: take("attn_norm", &[hidden])?,
                q: take("q", &[q_size, hidden])?,
                k: take("k", &[kv_size, hidden])?,
                v: take("v", &[kv_size, hidden])?,
                o: take("o", &[hidden, q_size])?,
                mlp_norm: take("mlp_norm", &[hidden])?,
                gate: take("gate", &[mlp, hidden])?,
                up: take("up", &[mlp, hidden])?,
                down: take("down", &[hidden, mlp])?,
            });
        }
        Ok(Model { config, embed, norm, layers })
    }

    fn normalised(&self, x: &[f32], weight: &[f32]) -> Vec<f32> {
        let mut y = Vec::with_capacity(x.len());
        for row in x.chunks_exact(weight.len()) {
            let squares = row.iter().fold(0.0f32, |sum, x| sum + x * x);
            let factor = 1.0 / (squares / weight.len() as f32 + self.config.norm_eps).sqrt();
            y.extend(row.iter().zip(weight).map(|(x, weight)| x * factor * weight));
        }
        y
    }

    /// Half-split rotary positions: feature i is rotated with feature i + head_dim / 2.
    fn rotate(&self, heads: &mut [f32], head_count: usize, first_position: usize) {
        let half = self.config.head_dim / 2;
        let row_size = head_count * self.config.head_dim;
        for (row, heads) in heads.chunks_exact_mut(row_size).enumerate() {
            for i in 0..half {
                let position = (first_position + row) as f32;
                let angle = position * self.config.rope_base.powf(-(i as f32) / half as f32);
                let (cosine, sine) = (angle.cos(), angle.sin());
                for x in heads.chunks_exact_mut(self.config.head_dim) {
                    let (first, second) = (x[i], x[i + half]);
                    x[i] = first * cosine - second * sine;
                    x[i + half] = second * cosine + first * sine;
                }
            }
        }
    }

    /// Appends `bytes` to the text and returns the logits of the last of them.
    pub fn forward(&self, bytes: &[u8], attention: &mut Attention) -> Result<Vec<f32>, String> {
        let config = &self.config;
        let (hidden, first) = (config.hidden_size, attention.length());
        if bytes.is_empty() || first + bytes.len() > config.max_positions {
            return Err(format!("the text would leave positions 1 to {}", config.max_positions));
        }
        let embedded = bytes.iter().map(|byte| usize::from(*byte) * hidden);
        let mut x: Vec<f32> = embedded.flat_map(|at| self.embed[at..at + hidden].iter().copied()).collect();
        attention.begin_step(bytes.len()).map_err(|error| error.to_string())?;
        for (number, layer) in self.layers.iter().enumerate() {
            let input = self.normalised(&x, &layer.attn_norm);
            let mut q = multiply(&input, &layer.q, hidden);
            let mut k = multiply(&input, &layer.k, hidden);
            let v = multiply(&input, &layer.v, hidden);
            self.rotate(&mut q, config.num_heads, first);
            self.rotate(&mut k, config.num_kv_heads, first);
            let heads = attention.run(number, &q, &k, &v).map_err(|error| error.to_string())?;

            add(&mut x, &multiply(&heads, &layer.o, config.num_heads * config.head_dim));
            let input = self.normalised(&x, &layer.mlp_norm);
            let gate = multiply(&input, &layer.gate, hidden);
            let up = multiply(&input, &layer.up, hidden);
            let inner: Vec<f32> =
                gate.iter().zip(&up).map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up).collect();
            add(&mut x, &multiply(&inner, &layer.down, config.mlp_size));
        }
        Ok(multiply(&self.normalised(&x[x.len() - hidden..], &self.norm), &self.embed, hidden))
    }
}

fn take(tensors: &mut BTreeMap<String, Tensor>, name: String, shape: &[usize]) -> Result<Matrix, String> {
    let tensor = tensors.remove(&(name.clone() + ".weight"));
    let tensor = tensor.ok_or_else(|| format!("the model has no tensor {name}.weight"))?;
    if tensor.shape != shape {
        return Err(format!("{name}.weight is {:?}; it must be {shape:?}", tensor.shape));
    }
    Ok(tensor.values)
}

/// The byte with the largest logit; the first of several.
pub fn most_likely(logits: &[f32]) -> u8 {
    let larger = |best: usize, i: usize| if logits[i] > logits[best] { i } else { best };
    (0..logits.len()).fold(0, larger) as u8
}
