
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0003_count_what_is_undone'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='migrationlog',
            options={'permissions': [('decide_migration', 'Can decide about old sessions'), ('apply_migration', 'Can apply and take back decisions about old sessions')], 'verbose_name': 'migration record'},
        ),
    ]
