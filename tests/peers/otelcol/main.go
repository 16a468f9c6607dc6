// SPDX-License-Identifier: MIT

// A collector of OpenTelemetry that takes profiles over OTLP and appends to a
// file what it then has, each message behind its length.
package main

import (
	"context"
	"encoding/binary"
	"log"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

type config struct {
	Path string `mapstructure:"path"`
}

var lock sync.Mutex

func (c *config) write(_ context.Context, profiles pprofile.Profiles) error {
	data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(profiles)
	if err != nil {
		return err
	}
	lock.Lock()
	defer lock.Unlock()
	file, err := os.OpenFile(c.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(append(
		binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...))
	return err
}

func fileExporter() exporter.Factory {
	create := func(ctx context.Context, set exporter.Settings,
		c component.Config) (xexporter.Profiles, error) {
		return xexporterhelper.NewProfiles(ctx, set, c, c.(*config).write)
	}
	return xexporter.NewFactory(component.MustNewType("file"),
		func() component.Config { return &config{} },
		xexporter.WithProfiles(create, component.StabilityLevelDevelopment))
}

func components() (otelcol.Factories, error) {
	all := otelcol.Factories{Telemetry: otelconftelemetry.NewFactory()}
	var err error
	if all.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](
		otlpreceiver.NewFactory()); err != nil {
		return all, err
	}
	all.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](
		fileExporter())
	return all, err
}

func main() {
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector"},
		Factories: components,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{
				DefaultScheme: "file",
				ProviderFactories: []confmap.ProviderFactory{
					fileprovider.NewFactory()},
			},
		},
	})
	if err := command.Execute(); err != nil {
		log.Fatal(err)
	}
}
