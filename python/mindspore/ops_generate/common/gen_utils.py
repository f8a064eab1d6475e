"""mindspore.ops_generate.common.gen_utils: tables of ops read from YAML."""

__all__ = ["safe_load_yaml"]


def safe_load_yaml(yaml_file_path):
    """What a YAML file holds; it needs the package PyYAML."""
    import yaml

    with open(yaml_file_path, encoding="utf-8") as file:
        return yaml.safe_load(file)
