package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
)

// The file is a 64-bit length, a JSON header that says where each tensor is, and the tensors. Every offset comes from
// the file, so every offset is checked before it is used.

type storedTensor struct {
	shape  []int64
	values []float32
}

func loadSafetensors(path string) (map[string]storedTensor, error) {
	bytes, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(bytes) < 8 {
		return nil, fmt.Errorf("%s: is too short for a header", path)
	}
	headerBytes := binary.LittleEndian.Uint64(bytes)
	bytes = bytes[8:]
	if headerBytes > uint64(len(bytes)) {
		return nil, fmt.Errorf("%s: its header is longer than the file", path)
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(bytes[:headerBytes], &header); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	data := bytes[headerBytes:]
	tensors := map[string]storedTensor{}
	for name, raw := range header {
		if name == "__metadata__" {
			continue
		}
		var entry struct {
			DType   string    `json:"dtype"`
			Shape   []int64   `json:"shape"`
			Offsets [2]uint64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(raw, &entry); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, name, err)
		}
		if entry.DType != "F16" {
			return nil, fmt.Errorf("%s: %s is %q, not F16", path, name, entry.DType)
		}
		count := uint64(1)
		for _, extent := range entry.Shape {
			if extent < 0 || (extent > 0 && count > math.MaxUint32/uint64(extent)) {
				return nil, fmt.Errorf("%s: %s has an impossible shape %v", path, name, entry.Shape)
			}
			count *= uint64(extent)
		}
		begin, end := entry.Offsets[0], entry.Offsets[1]
		if begin > end || end > uint64(len(data)) || end-begin != 2*count {
			return nil, fmt.Errorf("%s: %s is not within the file", path, name)
		}
		tensor := storedTensor{shape: entry.Shape, values: make([]float32, count)}
		for i := range tensor.values {
			tensor.values[i] = fromHalf(binary.LittleEndian.Uint16(data[begin+2*uint64(i):]))
		}
		tensors[name] = tensor
	}
	return tensors, nil
}
