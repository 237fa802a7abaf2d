//go:build !sluice_env

package sluice

// #cgo pkg-config: sluice
import "C"
