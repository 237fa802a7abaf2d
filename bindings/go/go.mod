module github.com/sluice-attention/sluice/bindings/go

go 1.19
